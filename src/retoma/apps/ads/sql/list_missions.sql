-- A page of missions, the newest first.
SELECT id, date_start, date_end, media_type, languages, status, checkpoint, generation, extraction,
       storage, session, worker_id, worker_job_id, worker_data_url, proxy_used, writer_id,
       writer_job_id, ads_count, success_count, failed_count, error_code, error_message,
       session_retries, scrape_retries, writer_retries, created_by, queued_by, canceled_by,
       created_at, queued_at, started_at, finished_at
FROM ads_missions
WHERE deleted_at IS NULL AND (CAST(:before AS text) IS NULL OR id < :before)
  AND (CAST(:status AS text) IS NULL OR status = :status)
ORDER BY id DESC LIMIT :n;
