-- name: end_session
-- A session is known to have ended: its proxy is free.
UPDATE ads_sessions SET ended_at = (SELECT clock()), ended_for = :reason
WHERE id = :session AND ended_at IS NULL
RETURNING worker, proxy, lost, asked_rest;

-- name: hear_session
-- A worker answers again, or has not since now.
UPDATE ads_sessions
SET silent_since = CASE WHEN :silent = 1 THEN coalesce(silent_since, (SELECT clock())) END
WHERE id = :session AND ended_at IS NULL
  AND (silent_since IS NULL AND :silent = 1 OR silent_since IS NOT NULL AND :silent = 0);

-- name: knows_session
-- Whether a worker ever had a session that missions could have.
SELECT 1 FROM pool_items WHERE pool = 'ads.sessions' AND name = :worker;

-- name: last_proxy
-- By which proxy the worker's session before this one went out, and why that ended.
SELECT proxy, proxy_name, coalesce(lost, ended_for) FROM ads_sessions
WHERE worker = :worker AND id < :session AND proxy IS NOT NULL
ORDER BY id DESC LIMIT 1;

-- name: leave_scrapes
-- Remember what is scraped in a session that is given up: nobody will see it end.
INSERT INTO ads_left_scrapes (worker, job_id)
SELECT worker_id, worker_job_id FROM ads_missions
WHERE session = :session AND status = 'running' AND checkpoint = 'extracao'
  AND worker_job_id IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: look_at_session
-- Where a session stands: what was told of it, whose hands it is in, and whether it is still wanted.
SELECT s.worker, s.proxy, s.proxy_name, s.lost, s.ended_at IS NOT NULL, s.served,
       s.ready_at IS NOT NULL, s.opened_at, s.silent_since,
       w.status,
       w.active = TRUE AND w.deleted_at IS NULL AND (s.proxy IS NULL OR EXISTS (
           SELECT 1 FROM pool_items i
           WHERE i.pool = 'ads.proxies' AND i.name = s.proxy AND i.state = 'on')),
       o.wish,
       EXISTS (SELECT 1 FROM pool_items i
               WHERE i.pool = 'ads.sessions' AND i.name = s.worker AND i.state = 'on'),
       EXISTS (SELECT 1 FROM pool_items i JOIN jobs j ON j.id = i.job
               WHERE i.pool = 'ads.sessions' AND i.name = s.worker
                 AND j.state IN ('waiting', 'running', 'parked') AND j.generation = i.generation),
       EXISTS (SELECT 1 FROM ads_missions m WHERE m.status IN ('queued', 'running')
                 AND NOT EXISTS (SELECT 1 FROM jobs j
                                 WHERE j.id = coalesce(m.storage, m.extraction) AND j.state = 'parked')),
       (SELECT clock()),
       EXISTS (SELECT 1 FROM ads_sessions n
               WHERE n.worker = s.worker AND n.id >= s.id AND (n.lost = :away OR n.ended_for = :gone)),
       EXISTS (SELECT 1 FROM ads_sessions n
               WHERE n.worker = s.worker AND n.id > s.id AND n.ready_at IS NOT NULL),
       w.active = TRUE AND w.deleted_at IS NULL
FROM ads_sessions s JOIN ads_workers w ON w.id = s.worker, ads_orchestrator o
WHERE s.id = :session;

-- name: lose_session
-- A session is of no use any more; the first reason stays.
UPDATE ads_sessions SET lost = :code, asked_rest = :rest WHERE id = :session AND lost IS NULL AND ended_at IS NULL
RETURNING worker, proxy_name;

-- name: other_proxy
-- Another proxy that is on, free, and has not failed of late.
SELECT 1 FROM pool_items
WHERE pool = 'ads.proxies' AND state = 'on' AND job IS NULL AND failures = 0 AND name <> :proxy
LIMIT 1;

-- name: open_session
-- A session has its proxy, and is about to be asked for; since when it had waited for one.
UPDATE ads_sessions SET proxy = :proxy, proxy_name = :name, opened_at = (SELECT clock())
WHERE id = :session
RETURNING waits_since, opened_at;

-- name: ready_session
-- A session may be given missions.
UPDATE ads_sessions SET ready_at = (SELECT clock()) WHERE id = :session AND ended_at IS NULL
RETURNING opened_at, ready_at, worker, proxy_name;

-- name: rest_worker
-- A worker without a session: idle, or in error until it has rested; `counted`: that is one more failure.
UPDATE ads_workers
SET status = CASE WHEN :counted = 1 AND CAST(:rest AS double precision) IS NOT NULL THEN 'error' ELSE 'idle' END,
    session_count = 0, mission = NULL,
    failures = CASE WHEN :counted = 1 THEN failures + 1
                    WHEN CAST(:rest AS double precision) IS NOT NULL THEN failures ELSE 0 END,
    rests_until = CASE WHEN CAST(:rest AS double precision) IS NOT NULL
                       THEN clock_in(CAST(:rest AS double precision)) END, updated_at = (SELECT clock())
WHERE id = :worker
RETURNING failures;

-- name: wait_for_proxy
-- A session waits for a proxy; only that it begins to is news.
UPDATE ads_sessions SET waits_since = (SELECT clock())
WHERE id = :session AND waits_since IS NULL AND proxy IS NULL AND ended_at IS NULL
RETURNING worker;

-- name: worker_failures
-- How many sessions of a worker have failed in a row.
SELECT failures FROM ads_workers WHERE id = :worker;
