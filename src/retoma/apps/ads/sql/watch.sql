-- name: watch
-- What an operator should know of: sessions without a proxy for too long, ads without a writer, workers in error.
SELECT (SELECT count(*) FROM ads_sessions s WHERE s.ended_at IS NULL AND s.proxy IS NULL
            AND s.waits_since <= clock_in(-CAST(:late AS double precision))),
       (SELECT count(*) FROM ads_workers w WHERE w.active = TRUE AND w.deleted_at IS NULL),
       (SELECT count(*) FROM ads_workers w WHERE w.active = TRUE AND w.deleted_at IS NULL
            AND w.status = 'error'),
       (SELECT count(*) FROM ads_missions m WHERE m.status = 'running' AND m.checkpoint = 'armazenamento'
            AND m.scraped_at <= clock_in(-CAST(:late AS double precision))
            AND NOT EXISTS (
                SELECT 1 FROM ads_writers r LEFT JOIN breakers b ON b.name = 'ads.writer.' || r.id
                WHERE r.active = TRUE AND r.deleted_at IS NULL AND coalesce(b.state, 'closed') = 'closed')),
       (SELECT count(*) FROM ads_orchestrator WHERE wish = 'started'
            AND NOT EXISTS (SELECT 1 FROM pauses WHERE scope = 'application' AND name = 'ads')
            AND EXISTS (SELECT 1 FROM ads_missions WHERE status IN ('queued', 'running')));
