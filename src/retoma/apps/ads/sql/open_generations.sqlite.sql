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
