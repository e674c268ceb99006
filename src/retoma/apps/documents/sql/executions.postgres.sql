-- name: add_documents
-- Write down what is to be classified, in order; nobody takes it up before its jobs are submitted.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO documents (code, name, sha256, size)
SELECT t.code, t.name, t.sha256, t.size
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json))
    AS (code text, name text, sha256 text, size bigint))
    WITH ORDINALITY AS t(code, name, sha256, size, nth)
ORDER BY t.nth
RETURNING id;
