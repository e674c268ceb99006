-- name: add_missions
-- Put missions into the Banco de Missões; nobody takes them up.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_missions (id, date_start, date_end, media_type, languages, created_by, created_at)
SELECT t.id, t.date_start, t.date_end, t.media_type, t.languages, :actor, (SELECT clock())
FROM json_to_recordset(CAST(:rows AS json)) AS t(id text, date_start date, date_end date,
    media_type text, languages json);

-- name: hold_extraction
-- Hold the job that extracts a mission, before the mission: in the order its own story locks them.
-- Twin: the row is locked here; SQLite has one writer.
SELECT j.id FROM jobs j
WHERE j.id = (SELECT m.extraction FROM ads_missions m WHERE m.id = :mission)
FOR UPDATE;

-- name: log_queued
-- A line of the log for each of these missions: it is in the queue.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
INSERT INTO ads_logs (mission, event, details, at)
SELECT value, 'mission_queued', CAST(:details AS json), (SELECT clock())
FROM json_array_elements_text(CAST(:missions AS json));

-- name: open_generations
-- Put missions into the queue, from wherever they may be put there; their last life leaves only its log.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
WITH mine AS MATERIALIZED (
    SELECT id AS locked FROM ads_missions
    WHERE id IN (SELECT json_array_elements_text(CAST(:missions AS json))) ORDER BY id FOR UPDATE
)
UPDATE ads_missions
SET status = 'queued', checkpoint = 'atribuido', generation = generation + 1, extraction = NULL,
    storage = NULL, session = NULL, worker_id = NULL, worker_job_id = NULL,
    worker_data_url = NULL, proxy_used = NULL, writer_id = NULL, writer_job_id = NULL,
    ads_count = NULL, success_count = NULL, failed_count = NULL, error_code = NULL,
    error_message = NULL, session_retries = 0, scrape_retries = 0, writer_retries = 0,
    queued_by = :actor, canceled_by = NULL, queued_at = (SELECT clock()), started_at = NULL,
    scraped_at = NULL, finished_at = NULL
FROM mine WHERE id = mine.locked
  AND deleted_at IS NULL AND status IN ('novo', 'completed', 'failed', 'canceled')
RETURNING id, generation;

-- name: set_extractions
-- Which jobs extract these missions.
-- Twin: sets arrive by json_each_text here, by json_each there.
UPDATE ads_missions SET extraction = CAST(o.value AS bigint)
FROM json_each_text(CAST(:jobs AS json)) o WHERE ads_missions.id = o.key;
