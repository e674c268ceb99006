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
