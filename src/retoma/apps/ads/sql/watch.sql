-- What an operator should know of: sessions that have waited too long for a proxy, and workers in error.
SELECT (SELECT count(*) FROM ads_sessions s WHERE s.ended_at IS NULL AND s.proxy IS NULL
            AND s.waits_since <= clock_in(-CAST(:late AS double precision))),
       (SELECT count(*) FROM ads_workers w WHERE w.active = TRUE AND w.deleted_at IS NULL),
       (SELECT count(*) FROM ads_workers w WHERE w.active = TRUE AND w.deleted_at IS NULL
            AND w.status = 'error'),
       (SELECT count(*) FROM ads_orchestrator WHERE wish = 'started'
            AND NOT EXISTS (SELECT 1 FROM pauses WHERE scope = 'application' AND name = 'ads')
            AND EXISTS (SELECT 1 FROM ads_missions WHERE status IN ('queued', 'running')));
