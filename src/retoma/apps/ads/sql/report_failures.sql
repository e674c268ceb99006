-- Missions that have failed of late, the newest first, as each failure was told; also of missions done once more since, or deleted.
SELECT l.mission, m.status, l.details, l.at, m.worker_id, m.proxy_used
FROM ads_logs l JOIN ads_missions m ON m.id = l.mission
WHERE l.event = 'mission_failed' AND l.at > clock_in(:ago)
  AND (CAST(:code AS text) IS NULL OR l.details ->> 'error_code' = :code)
ORDER BY l.at DESC, l.id DESC LIMIT :n;
