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
