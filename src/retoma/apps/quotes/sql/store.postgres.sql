-- name: add_quotes
-- Write down what is to be quoted, in order; nobody takes it up before its jobs are submitted.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO quotes (code, kind, description, created_by, created_at)
SELECT t.code, t.kind, t.description, :actor, (SELECT clock())
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json)) AS (code text, kind text, description text))
    WITH ORDINALITY AS t(code, kind, description, nth)
ORDER BY t.nth
RETURNING id;

-- name: average_duration
-- Seconds from the first start of a quote to its end, on average, of those that came to DONE within so many seconds.
-- Twin: an instant is a timestamp here, a number of microseconds there.
-- Reads those alone, by the index of when they ended; of one that was claimed once its own start is the first.
SELECT avg(CAST(EXTRACT(EPOCH FROM j.ended_at - CASE WHEN j.epoch = 1 THEN j.started_at ELSE coalesce((
    SELECT e.at FROM events e WHERE e.job = j.id AND e.type = 'claimed' ORDER BY e.seq LIMIT 1),
    j.started_at) END) AS double precision))
FROM jobs j
WHERE j.kind = 'quotes.quote' AND j.state = 'done'
  AND j.ended_at >= (SELECT clock_in(-CAST(:seconds AS double precision)));

-- name: quotes_by_job
-- The quotes of these jobs, those of the newest first; only in this status and of this lote, where they are given.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at, q.job
FROM quotes q JOIN quote_requests r ON r.id = q.id
WHERE q.job IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:jobs AS json)))
  AND (CAST(:status AS text) IS NULL OR r.status = :status)
  AND (CAST(:lote AS bigint) IS NULL OR r.batch_request_id = :lote)
ORDER BY q.job DESC;

-- name: quotes_of_jobs
-- Which quotes these jobs are of.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT job, id FROM quotes
WHERE job IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:jobs AS json)));
