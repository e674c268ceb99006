-- name: find_answers
-- What was answered already about these contents, asked by the same recipe, and whose result it is.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
SELECT a.sha256, a.recipe, a.document, j.result
FROM json_to_recordset(CAST(:rows AS json)) AS t(sha256 text, recipe text)
JOIN document_askings a ON a.sha256 = t.sha256 AND a.recipe = t.recipe
JOIN jobs j ON j.id = a.job
WHERE j.state = 'done';

-- name: get_documents
-- What stories are told of their documents, and by which rules these are classified.
-- Twin: a set of ids arrives by json_array_elements_text here, by json_each there.
SELECT d.id, d.execution, d.code, d.name, d.sha256, d.size, e.rules, e.epoch,
       e.blocked_code
FROM documents d JOIN executions e ON e.id = d.execution
WHERE d.id = ANY(ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS bigint)));

-- name: take_askings
-- Of these documents, those that may ask the model about their content; nobody else asks, or has an answer.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- Whoever holds one is over when it runs no more under that epoch (a smaller one is an older look at the
-- job). What it was answered and has not come to tell is not asked again: it ends with that by itself.
INSERT INTO document_askings AS a (sha256, recipe, document, job, epoch, at)
SELECT t.sha256, t.recipe, t.document, t.job, t.epoch, (SELECT clock())
FROM json_to_recordset(CAST(:rows AS json))
    AS t(sha256 text, recipe text, document bigint, job bigint, epoch integer)
ORDER BY t.sha256, t.recipe
ON CONFLICT (sha256, recipe) DO UPDATE
SET document = excluded.document, job = excluded.job, epoch = excluded.epoch, at = excluded.at
WHERE a.job = excluded.job OR EXISTS (
    SELECT 1 FROM jobs j
    WHERE j.id = a.job AND j.state <> 'done'
      AND (j.epoch > a.epoch OR j.epoch = a.epoch AND j.state <> 'running')
      AND NOT (j.state IN ('waiting', 'running') AND j.aside IS NULL AND EXISTS (
          SELECT 1 FROM steps s
          WHERE s.job = j.id AND s.name = 'classificar' AND s.state = 'saved')))
RETURNING document;
