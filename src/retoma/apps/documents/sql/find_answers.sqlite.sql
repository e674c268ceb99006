-- What was answered already about these contents, asked by the same recipe, and whose result it is.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT a.sha256, a.recipe, a.document, j.result
FROM json_each(:rows) t
JOIN document_askings a ON a.sha256 = t.value ->> 'sha256' AND a.recipe = t.value ->> 'recipe'
JOIN jobs j ON j.id = a.job
WHERE j.state = 'done';
