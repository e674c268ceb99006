-- How many jobs of each kind run at which checkpoint, and how many of those do not move.
-- Bounded by slots; history is not read.
SELECT kind, coalesce(checkpoint, ''), count(*), sum(still) FROM (
    SELECT j.kind, j.checkpoint,
           CASE WHEN r.boot IS NULL OR r.state NOT IN ('alive', 'leaving')
                  OR r.lease_until < (SELECT clock())
                  OR j.started_at < (SELECT clock_in(-CAST(:quiet AS double precision)))
                     AND (j.progress_at IS NULL
                          OR j.progress_at < (SELECT clock_in(-CAST(:quiet AS double precision))))
                THEN 1 ELSE 0 END AS still
    FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
    WHERE j.runner > '') held
GROUP BY kind, coalesce(checkpoint, '');
