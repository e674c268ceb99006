-- name: add_documents
-- Write down what is to be classified, in order; nobody takes it up before its jobs are submitted.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO documents (code, name, sha256, size)
SELECT value ->> 'code', value ->> 'name', value ->> 'sha256', value ->> 'size'
FROM json_each(:rows) ORDER BY key
RETURNING id;
