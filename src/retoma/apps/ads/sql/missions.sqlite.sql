-- name: add_missions
-- Put missions into the Banco de Missões; nobody takes them up.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_missions (id, date_start, date_end, media_type, languages, created_by, created_at)
SELECT value ->> 'id', value ->> 'date_start', value ->> 'date_end', value ->> 'media_type',
       value -> 'languages', :actor, (SELECT clock())
FROM json_each(:rows);

-- name: hold_extraction
-- Hold the job that extracts a mission, before the mission: in the order its own story locks them.
-- Twin: the row is locked there; SQLite has one writer.
SELECT extraction FROM ads_missions WHERE id = :mission;

-- name: log_queued
-- A line of the log for each of these missions: it is in the queue.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
INSERT INTO ads_logs (mission, event, details, at)
SELECT value, 'mission_queued', :details, (SELECT clock()) FROM json_each(:missions);

-- name: open_generations
-- Put missions into the queue, from wherever they may be put there; their last life leaves only its log.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
UPDATE ads_missions
SET status = 'queued', checkpoint = 'atribuido', generation = generation + 1, extraction = NULL,
    storage = NULL, session = NULL, worker_id = NULL, worker_job_id = NULL,
    worker_data_url = NULL, proxy_used = NULL, writer_id = NULL, writer_job_id = NULL,
    ads_count = NULL, success_count = NULL, failed_count = NULL, error_code = NULL,
    error_message = NULL, session_retries = 0, scrape_retries = 0, writer_retries = 0,
    queued_by = :actor, canceled_by = NULL, queued_at = (SELECT clock()), started_at = NULL,
    scraped_at = NULL, finished_at = NULL
WHERE id IN (SELECT value FROM json_each(:missions))
  AND deleted_at IS NULL AND status IN ('novo', 'completed', 'failed', 'canceled')
RETURNING id, generation;

-- name: set_extractions
-- Which jobs extract these missions.
-- Twin: sets arrive by json_each_text there, by json_each here.
UPDATE ads_missions SET extraction = o.value FROM json_each(:jobs) o WHERE ads_missions.id = o.key;
