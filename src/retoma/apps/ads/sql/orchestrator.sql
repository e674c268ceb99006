-- name: begin_session
-- Begin a session of a worker; of each there is one at a time.
INSERT INTO ads_sessions (worker, began_at) VALUES (:worker, (SELECT clock()))
ON CONFLICT DO NOTHING
RETURNING id;

-- name: count_missions
-- How much is left to do (§6.7), and whether the orchestrator is to do it.
SELECT o.wish, o.changed_by,
       (SELECT count(*) FROM ads_missions WHERE status = 'queued'),
       (SELECT count(*) FROM ads_missions WHERE status = 'running'),
       (SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL)
FROM ads_orchestrator o;

-- name: free_workers
-- Workers that may have a session and have none; when those in error have rested; now.
SELECT w.id, w.rests_until, (SELECT clock())
FROM ads_workers w
WHERE w.active = TRUE AND w.deleted_at IS NULL AND w.status IN ('idle', 'error')
  AND NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = w.id AND s.ended_at IS NULL)
ORDER BY w.id;

-- name: get_wish
-- Whether the orchestrator is to work.
SELECT wish FROM ads_orchestrator;

-- name: offered_sessions
-- The workers whose sessions missions may have.
SELECT name FROM pool_items WHERE pool = 'ads.sessions' AND state = 'on' ORDER BY name;

-- name: open_work
-- Whether missions wait for a session: those in the queue, and those to be tried again that no worker has.
SELECT EXISTS (SELECT 1 FROM ads_missions WHERE status = 'queued')
    OR EXISTS (SELECT 1 FROM ads_missions m JOIN jobs j ON j.id = m.extraction
               WHERE m.status = 'running' AND m.checkpoint = 'extracao'
                 AND j.state IN ('waiting', 'running')
                 AND NOT EXISTS (SELECT 1 FROM ads_workers w WHERE w.mission = m.id));

-- name: ready_workers
-- Workers whose session is ready, and has not done its share.
SELECT s.worker FROM ads_sessions s
JOIN pool_items i ON i.pool = 'ads.sessions' AND i.name = s.worker
WHERE s.ended_at IS NULL AND s.ready_at IS NOT NULL AND s.lost IS NULL AND s.served < :most
ORDER BY s.worker;

-- name: set_session_job
-- Which job drives a session.
UPDATE ads_sessions SET job = :job WHERE id = :session;

-- name: set_wish
-- Say whether the orchestrator is to work; nothing comes back where that was so already.
UPDATE ads_orchestrator SET wish = :wish, changed_by = :actor, changed_at = (SELECT clock())
WHERE wish <> :wish
RETURNING one;
