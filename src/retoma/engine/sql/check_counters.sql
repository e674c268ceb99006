-- Groups of jobs that the counters and the rows of jobs count differently, for the checker.
-- Batch -1 stands for all jobs together, 0 for jobs without a batch. Jobs of an accepted submission
-- that are still to be moved into their batch count as waiting.
WITH found AS MATERIALIZED (
    SELECT coalesce(batch, 0) AS batch, kind, state,
           CASE WHEN state = 'dead' THEN coalesce(code, '') ELSE '' END AS code, count(*) AS n
    FROM jobs GROUP BY 1, 2, 3, 4
    UNION ALL
    SELECT f.batch, j.kind, 'waiting', '', count(*)
    FROM fillings f JOIN filling_jobs j ON j.filling = f.id
    WHERE f.batch IS NOT NULL GROUP BY 1, 2
), moved AS MATERIALIZED (
    SELECT coalesce(batch, 0) AS batch, kind, to_state AS state,
           CASE WHEN to_state = 'dead' THEN coalesce(code, '') ELSE '' END AS code, n
    FROM tallies
    UNION ALL
    SELECT coalesce(batch, 0), kind, from_state,
           CASE WHEN from_state = 'dead' THEN coalesce(code, '') ELSE '' END, -n
    FROM tallies WHERE from_state IS NOT NULL
)
SELECT batch, kind, state, code, sum(counted), sum(found)
FROM (
    SELECT batch, kind, state, code, n AS counted, 0 AS found FROM counts
    UNION ALL SELECT batch, kind, state, code, n, 0 FROM moved
    UNION ALL SELECT -1, kind, state, code, n, 0 FROM moved
    UNION ALL SELECT batch, kind, state, code, 0, n FROM found
    UNION ALL SELECT -1, kind, state, code, 0, n FROM found) each
WHERE state IN ('waiting', 'running', 'parked', 'done', 'skipped', 'dead', 'canceled')
GROUP BY batch, kind, state, code
HAVING sum(counted) <> sum(found)
ORDER BY batch, kind, state, code LIMIT :most;
