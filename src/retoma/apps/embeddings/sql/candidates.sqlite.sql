-- name: hits_of
-- These chunks as they are now, each with the document it is of; what is gone is not among them.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id, k.ordinal, d.embedded_at, d.name, k.begins, k.ends, k.text, k.hash, d.metadata
FROM json_each(:rows) t
JOIN embeddings_documents d ON d.id = t.value ->> 'document'
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition
                        AND k.ordinal = t.value ->> 'ordinal';
