-- Write down documents, in order; nobody takes them up before their jobs are submitted.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_documents (collection, name, sha256, text, created_by, created_at)
SELECT :collection, value ->> 'name', value ->> 'sha256', value ->> 'text', :actor, (SELECT clock())
FROM json_each(:rows) ORDER BY key
RETURNING id;
