-- name: knew_mission
-- Whether there is or ever was a mission: what happened to it outlives it.
SELECT 1 FROM ads_missions WHERE id = :mission;

-- name: now
-- What time it is.
SELECT (SELECT clock());

-- name: report_failures
-- Missions that have failed of late, the newest first, as each failure was told; also of missions done once more since, or deleted.
SELECT l.mission, m.status, l.details, l.at, m.worker_id, m.proxy_used
FROM ads_logs l JOIN ads_missions m ON m.id = l.mission
WHERE l.event = 'mission_failed' AND l.at > clock_in(:ago)
  AND (CAST(:code AS text) IS NULL OR l.details ->> 'error_code' = :code)
ORDER BY l.at DESC, l.id DESC LIMIT :n;

-- name: report_proxies
-- How proxies fare: failures in a row, and of late each session that failed or was left, once; the worst first.
SELECT p.id, p.name, p.host, p.port, p.fail_count, p.active, coalesce(e.failures, 0),
       coalesce(e.rotations, 0), e.last_at
FROM proxies p
LEFT JOIN (
    SELECT l.details ->> 'proxy_name' AS name,
           count(*) FILTER (WHERE l.event = 'session_failed') AS failures,
           count(*) FILTER (WHERE l.event = 'proxy_rotated') AS rotations,
           max(CASE WHEN l.event = 'session_failed' THEN l.at END) AS last_at
    FROM ads_logs l
    WHERE l.event IN ('session_failed', 'proxy_rotated') AND l.at > clock_in(:ago)
    GROUP BY 1
) e ON e.name = p.name
ORDER BY p.fail_count DESC, coalesce(e.failures, 0) DESC, p.id LIMIT :n;

-- name: report_workers
-- What each worker has brought home of late. Whoever had the mission then is credited, not whoever has it now.
SELECT w.id, w.name, count(*) FILTER (WHERE told.event = 'scrape_completed'),
       count(*) FILTER (WHERE told.event = 'scrape_empty'),
       count(*) FILTER (WHERE told.event = 'scrape_failed'),
       avg(told.took) FILTER (WHERE told.event = 'scrape_completed'),
       max(told.took) FILTER (WHERE told.event = 'scrape_completed'),
       coalesce(sum(told.ads) FILTER (WHERE told.event = 'scrape_completed'), 0)
FROM (
    SELECT l.event, CAST(l.details ->> 'duration_ms' AS double precision) AS took,
           CAST(l.details ->> 'ads_count' AS integer) AS ads,
           coalesce(l.details ->> 'worker_id', (
               SELECT a.details ->> 'worker_id' FROM ads_logs a
               WHERE a.mission = l.mission AND a.event = 'mission_assigned' AND a.id < l.id
               ORDER BY a.id DESC LIMIT 1), m.worker_id) AS worker
    FROM ads_logs l JOIN ads_missions m ON m.id = l.mission
    WHERE l.event IN ('scrape_completed', 'scrape_empty', 'scrape_failed') AND l.at > clock_in(:ago)
) told
JOIN ads_workers w ON w.id = told.worker
GROUP BY w.id, w.name
ORDER BY w.id;
