-- name: vectors_of_chunks
-- The vectors of these chunks as they are now, of one model alone.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id, k.ordinal, v.vector
FROM json_to_recordset(CAST(:rows AS json)) AS t(document bigint, ordinal integer)
JOIN embeddings_documents d ON d.id = t.document
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition AND k.ordinal = t.ordinal
JOIN embeddings_vectors v ON v.hash = k.hash
WHERE v.model = :model AND v.version = :version AND v.dims = :dims;
