-- name: check_batches
-- Batches whose jobs lie outside the range of ids it names, and batches of jobs that are not there, for the checker.
SELECT found.batch, b.first_job, b.last_job, found.first_job, found.last_job, found.n
FROM (SELECT batch, min(id) AS first_job, max(id) AS last_job, count(*) AS n
      FROM jobs WHERE batch IS NOT NULL GROUP BY batch) found
LEFT JOIN batches b ON b.id = found.batch
WHERE b.id IS NULL OR found.first_job < b.first_job OR found.last_job > b.last_job
ORDER BY found.batch LIMIT :most;

-- name: check_costs
-- What each account of every scope has come to, over all time, for the checker.
SELECT scope, name, provider, model, unit, sort, amount
FROM costs
WHERE scope IN ('all', 'kind', 'application', 'provider') AND period = '';

-- name: check_counters
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

-- name: check_holds
-- Pool items that are held by a job that is not there, or under an epoch it never had, for the checker.
SELECT i.pool, i.name, i.job, i.epoch, j.epoch
FROM pool_items i LEFT JOIN jobs j ON j.id = i.job
WHERE i.job IS NOT NULL AND (j.id IS NULL OR i.epoch > j.epoch OR i.generation > j.generation)
ORDER BY i.pool, i.name LIMIT :most;

-- name: check_limits
-- How many running jobs name each set of limits, for the checker.
SELECT limit_key, count(*) FROM jobs
WHERE runner IS NOT NULL AND limit_key IS NOT NULL
GROUP BY limit_key;

-- name: check_orphans
-- Rows that belong to a job that is not there, by table, for the checker.
SELECT 'steps', s.job, s.name FROM steps s
WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = s.job)
UNION ALL
SELECT 'job_evidence', e.job, e.name FROM job_evidence e
WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = e.job)
LIMIT :most;

-- name: check_runners
-- Jobs that are running on a runner that is not there, for the checker.
SELECT j.id, j.runner FROM jobs j
WHERE j.runner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runners r WHERE r.boot = j.runner)
ORDER BY j.id LIMIT :most;

-- name: check_used_limits
-- How many running jobs each limit counts, for the checker.
SELECT key, used FROM limits;
