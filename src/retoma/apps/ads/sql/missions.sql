-- name: ask_cancel
-- Who wants a mission canceled. In the writer's hands it is canceled at once: the writer is only followed.
UPDATE ads_missions
SET canceled_by = coalesce(canceled_by, :actor),
    status = CASE WHEN checkpoint = 'armazenamento' THEN 'canceled' ELSE status END,
    finished_at = CASE WHEN checkpoint = 'armazenamento' THEN (SELECT clock()) END
WHERE id = :mission AND deleted_at IS NULL AND status IN ('queued', 'running')
RETURNING extraction, checkpoint;

-- name: count_by_status
-- How many missions there are of each status.
SELECT status, count(*) FROM ads_missions WHERE deleted_at IS NULL GROUP BY status;

-- name: delete_mission
-- Take a mission out of the bank where nobody is at it; its log stays. Nothing comes back where somebody is.
UPDATE ads_missions SET deleted_at = (SELECT clock())
WHERE id = :mission AND deleted_at IS NULL
  AND status IN ('novo', 'completed', 'failed', 'canceled')
RETURNING id;

-- name: find_missions
-- The missions that were looked for, all of them, the oldest first; one more than may be meant at once.
SELECT id FROM ads_missions
WHERE deleted_at IS NULL
  AND (CAST(:status AS text) IS NULL OR status = :status)
  AND (CAST(:media_type AS text) IS NULL OR media_type = :media_type)
  AND (CAST(:language AS text) IS NULL OR CAST(languages AS text) LIKE '%"' || :language || '"%')
  AND (CAST(:since AS text) IS NULL OR CAST(date_end AS text) >= :since)
  AND (CAST(:until AS text) IS NULL OR CAST(date_start AS text) <= :until)
  AND (CAST(:code AS text) IS NULL OR error_code = :code)
ORDER BY id LIMIT :n;

-- name: get_mission
-- One mission, as its row tells it.
SELECT id, date_start, date_end, media_type, languages, status, checkpoint, generation, extraction,
       storage, session, worker_id, worker_job_id, worker_data_url, proxy_used, writer_id,
       writer_job_id, ads_count, success_count, failed_count, error_code, error_message,
       session_retries, scrape_retries, writer_retries, created_by, queued_by, canceled_by,
       created_at, queued_at, started_at, finished_at
FROM ads_missions WHERE id = :mission AND deleted_at IS NULL;

-- name: list_missions
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

-- name: list_running
-- Missions in somebody's hands, in the order in which their jobs are locked.
SELECT id FROM ads_missions WHERE status = 'running' AND deleted_at IS NULL ORDER BY extraction;

-- name: list_timeline
-- What was told of a mission and of the sessions that served it, as mission_logs has it, in order.
SELECT at, event, details FROM (
    SELECT l.at, l.id, l.event, l.details FROM ads_logs l WHERE l.mission = :mission
    UNION ALL
    SELECT l.at, l.id, l.event, l.details
    FROM ads_served v JOIN ads_logs l ON l.session = v.session
    WHERE v.mission = :mission AND l.mission IS NULL AND (v.left_at IS NULL OR l.at <= v.left_at)
) told
ORDER BY at, id LIMIT 10000;

-- name: list_underway
-- Missions under way, the oldest first; how far, as the job that has each in its hands tells it.
SELECT m.id, m.checkpoint, m.worker_id, w.name, m.proxy_used, m.ads_count,
       m.session_retries + m.scrape_retries + m.writer_retries, m.canceled_by, m.started_at,
       j.id AS job, j.state, j.progress, j.note
FROM ads_missions m
LEFT JOIN ads_workers w ON w.id = m.worker_id
LEFT JOIN jobs j ON j.id = coalesce(m.storage, m.extraction)
WHERE m.status = 'running' AND m.deleted_at IS NULL
ORDER BY m.id LIMIT :n;

-- name: parked_job
-- The job of a mission that is parked, where a person can let it go on.
SELECT j.id FROM ads_missions m JOIN jobs j ON j.id IN (m.extraction, m.storage)
WHERE m.id = :mission AND m.deleted_at IS NULL AND j.state = 'parked'
  AND j.reason IS DISTINCT FROM 'unknown_remote';

-- name: parked_storage
-- The job that stores the ads of a mission, where it is parked.
SELECT j.id FROM ads_missions m JOIN jobs j ON j.id = m.storage
WHERE m.id = :mission AND j.state = 'parked';

-- name: stops_unseen
-- Whether a mission is canceled, and what works at it has not been seen to end.
SELECT 1 FROM ads_missions m JOIN jobs j ON j.id IN (m.extraction, m.storage)
WHERE m.id = :mission AND m.canceled_by IS NOT NULL AND j.state IN ('waiting', 'running', 'parked');

-- name: who_has_it
-- Who has a mission, by name, and what the job that has it in its hands says.
SELECT w.name, r.name, j.id, j.state = 'parked', j.note, j.reason
FROM ads_missions m
LEFT JOIN ads_workers w ON w.id = m.worker_id
LEFT JOIN ads_writers r ON r.id = m.writer_id
LEFT JOIN jobs j ON j.id = coalesce(m.storage, m.extraction) AND j.state IN ('waiting', 'running', 'parked')
WHERE m.id = :mission;
