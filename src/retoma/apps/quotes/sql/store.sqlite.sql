-- name: add_quotes
-- Write down what is to be quoted, in order; nobody takes it up before its jobs are submitted.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO quotes (code, kind, description, created_by, created_at)
SELECT value ->> 'code', value ->> 'kind', value ->> 'description', :actor, (SELECT clock())
FROM json_each(:rows) ORDER BY key
RETURNING id;

-- name: average_duration
-- Seconds from the first start of a quote to its end, on average, of those that came to DONE within so many seconds.
-- Twin: an instant is a timestamp there, a number of microseconds here.
-- Reads those alone, by the index of when they ended; of one that was claimed once its own start is the first.
SELECT avg((j.ended_at - CASE WHEN j.epoch = 1 THEN j.started_at ELSE coalesce((
    SELECT e.at FROM events e WHERE e.job = j.id AND e.type = 'claimed' ORDER BY e.seq LIMIT 1),
    j.started_at) END) / 1e6)
FROM jobs j
WHERE j.kind = 'quotes.quote' AND j.state = 'done'
  AND j.ended_at >= (SELECT clock_in(-CAST(:seconds AS double precision)));

-- name: quotes_by_job
-- The quotes of these jobs, those of the newest first; only in this status and of this lote, where they are given.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at, q.job
FROM quotes q JOIN quote_requests r ON r.id = q.id
WHERE q.job IN (SELECT value FROM json_each(:jobs))
  AND (CAST(:status AS text) IS NULL OR r.status = :status)
  AND (CAST(:lote AS bigint) IS NULL OR r.batch_request_id = :lote)
ORDER BY q.job DESC;

-- name: quotes_of_jobs
-- Which quotes these jobs are of.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
SELECT job, id FROM quotes WHERE job IN (SELECT value FROM json_each(:jobs));
