-- The ads of a mission go to a writer once more: of one that has ended, and whose ads lie there still.
UPDATE ads_missions
SET status = 'running', checkpoint = 'armazenamento', storage = NULL, writer_id = NULL,
    writer_job_id = NULL, success_count = NULL, failed_count = NULL, error_code = NULL,
    error_message = NULL, writer_retries = 0, resends = resends + 1, finished_at = NULL
WHERE id = :mission AND deleted_at IS NULL AND worker_data_url IS NOT NULL
  AND (status = 'completed' AND failed_count > 0 OR status = 'failed' AND checkpoint = 'armazenamento')
RETURNING resends, generation;
