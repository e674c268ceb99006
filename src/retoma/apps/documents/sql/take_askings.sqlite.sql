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
