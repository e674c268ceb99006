-- A page of missions as they were looked for, the newest first.
SELECT id, date_start, date_end, media_type, languages, status, checkpoint, generation, extraction,
       storage, session, worker_id, worker_job_id, worker_data_url, proxy_used, writer_id,
       writer_job_id, ads_count, success_count, failed_count, error_code, error_message,
       session_retries, scrape_retries, writer_retries, created_by, queued_by, canceled_by,
       created_at, queued_at, started_at, finished_at
FROM ads_missions
WHERE deleted_at IS NULL AND (CAST(:before AS text) IS NULL OR id < :before)
  AND (CAST(:status AS text) IS NULL OR status = :status)
  AND (CAST(:media_type AS text) IS NULL OR media_type = :media_type)
  AND (CAST(:language AS text) IS NULL OR CAST(languages AS text) LIKE '%"' || :language || '"%')
  AND (CAST(:since AS text) IS NULL OR CAST(date_end AS text) >= :since)
  AND (CAST(:until AS text) IS NULL OR CAST(date_start AS text) <= :until)
  AND (CAST(:code AS text) IS NULL OR error_code = :code)
ORDER BY id DESC LIMIT :n;
