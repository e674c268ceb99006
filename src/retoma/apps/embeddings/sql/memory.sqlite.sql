-- name: vectors_of
-- The vectors by which these documents are searched now, of one model alone.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id, d.embedded_at, k.ordinal, v.vector
FROM json_each(:documents) t
JOIN embeddings_documents d ON d.id = t.value
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition
JOIN embeddings_vectors v ON v.hash = k.hash
WHERE d.edition > 0 AND v.model = :model AND v.version = :version AND v.dims = :dims
ORDER BY d.id, k.ordinal;
