-- What was answered already about these contents, asked by the same recipe, and whose result it is.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
SELECT a.sha256, a.recipe, a.document, j.result
FROM json_to_recordset(CAST(:rows AS json)) AS t(sha256 text, recipe text)
JOIN document_askings a ON a.sha256 = t.sha256 AND a.recipe = t.recipe
JOIN jobs j ON j.id = a.job
WHERE j.state = 'done';
