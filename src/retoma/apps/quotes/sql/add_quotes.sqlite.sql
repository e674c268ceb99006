-- Write down what is to be quoted, in order; nobody takes it up before its jobs are submitted.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO quotes (code, kind, description, created_by, created_at)
SELECT value ->> 'code', value ->> 'kind', value ->> 'description', :actor, (SELECT clock())
FROM json_each(:rows) ORDER BY key
RETURNING id;
