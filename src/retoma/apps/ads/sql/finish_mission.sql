-- A mission's ads are stored (§3.3). One that was canceled meanwhile stays so, and keeps the counts.
UPDATE ads_missions
SET status = CASE WHEN status = 'running' THEN 'completed' ELSE status END,
    checkpoint = CASE WHEN status = 'running' THEN 'finalizado' ELSE checkpoint END,
    error_code = CASE WHEN status = 'running' THEN NULL ELSE error_code END,
    error_message = CASE WHEN status = 'running' THEN NULL ELSE error_message END,
    success_count = :success, failed_count = :failed,
    finished_at = coalesce(finished_at, (SELECT clock()))
WHERE id = :mission AND storage = :job
RETURNING status, ads_count, queued_at, finished_at;
