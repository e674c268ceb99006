-- Write down documents, in order; nobody takes them up before their jobs are submitted.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_documents (collection, name, sha256, text, created_by, created_at)
SELECT :collection, t.name, t.sha256, t.text, :actor, (SELECT clock())
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json)) AS (name text, sha256 text, text text))
    WITH ORDINALITY AS t(name, sha256, text, nth)
ORDER BY t.nth
RETURNING id;
