-- Which documents these jobs are for, and in which collections those are.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.job, d.id, d.name, c.name
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
WHERE d.job IN (SELECT value FROM json_each(:jobs));
