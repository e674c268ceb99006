-- Write down what is to be quoted, in order; nobody takes it up before its jobs are submitted.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO quotes (code, kind, description, created_by, created_at)
SELECT t.code, t.kind, t.description, :actor, (SELECT clock())
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json)) AS (code text, kind text, description text))
    WITH ORDINALITY AS t(code, kind, description, nth)
ORDER BY t.nth
RETURNING id;
