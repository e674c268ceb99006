-- Which documents of a collection have these names.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT id, name, sha256, job FROM embeddings_documents
WHERE collection = :collection AND name IN (SELECT value FROM json_each(:names));
