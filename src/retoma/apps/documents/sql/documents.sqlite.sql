-- name: find_answers
-- What was answered already about these contents, asked by the same recipe, and whose result it is.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT a.sha256, a.recipe, a.document, j.result
FROM json_each(:rows) t
JOIN document_askings a ON a.sha256 = t.value ->> 'sha256' AND a.recipe = t.value ->> 'recipe'
JOIN jobs j ON j.id = a.job
WHERE j.state = 'done';

-- name: get_documents
-- What stories are told of their documents, and by which rules these are classified.
-- Twin: a set of ids arrives by json_array_elements_text there, by json_each here.
SELECT d.id, d.execution, d.code, d.name, d.sha256, d.size, e.rules, e.epoch,
       e.blocked_code
FROM documents d JOIN executions e ON e.id = d.execution
WHERE d.id IN (SELECT value FROM json_each(:ids));

-- name: take_askings
-- Of these documents, those that may ask the model about their content; nobody else asks, or has an answer.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
INSERT INTO document_askings (sha256, recipe, document, job, epoch, at)
SELECT value ->> 'sha256', value ->> 'recipe', value ->> 'document', value ->> 'job',
       value ->> 'epoch', (SELECT clock())
FROM json_each(:rows) WHERE true
ON CONFLICT (sha256, recipe) DO UPDATE
SET document = excluded.document, job = excluded.job, epoch = excluded.epoch, at = excluded.at
WHERE document_askings.job = excluded.job OR EXISTS (
    SELECT 1 FROM jobs j
    WHERE j.id = document_askings.job AND j.state <> 'done'
      AND (j.epoch > document_askings.epoch
           OR j.epoch = document_askings.epoch AND j.state <> 'running')
      AND NOT (j.state IN ('waiting', 'running') AND j.aside IS NULL AND EXISTS (
          SELECT 1 FROM steps s
          WHERE s.job = j.id AND s.name = 'classificar' AND s.state = 'saved')))
RETURNING document;
