-- name: check_jobs
-- A page of jobs, in the order of their ids, for the checker; payloads only where somebody compares them.
SELECT id, kind, batch, generation, fresh_from, reason, epoch, seq, failures, state, turn, run_at,
       runner, ended_at, CASE WHEN CAST(:whole AS integer) = 1 THEN payload END
FROM jobs
WHERE id > :after
ORDER BY id LIMIT :page;

-- name: check_events
-- The timelines of a page of jobs, for the checker.
SELECT job, seq, epoch, type, at, actor, details
FROM events
WHERE job > :after AND job <= :until
ORDER BY job, seq;

-- name: check_steps
-- The steps of a page of jobs, for the checker; their values only where somebody compares them.
SELECT job, name, version, key, generation, epoch, state, cost,
       CASE WHEN CAST(:whole AS integer) = 1 THEN value END
FROM steps
WHERE job > :after AND job <= :until
ORDER BY job;

-- name: check_job_costs
-- What the jobs of a page have spent: rolled-up costs and charges not yet rolled up, for the checker.
SELECT job, provider, model, unit, sum(amount)
FROM (
    SELECT j.id AS job, c.provider, c.model, c.unit, c.amount
    FROM jobs j CROSS JOIN costs c
    WHERE j.id > :after AND j.id <= :until
      AND c.scope = 'job' AND c.name = CAST(j.id AS text) AND c.sort = 'spent'
    UNION ALL
    SELECT job, provider, model, unit, amount FROM charges
    WHERE job > :after AND job <= :until AND sort = 'spent') spent
GROUP BY job, provider, model, unit
ORDER BY job;

-- name: check_open
-- Jobs that have not ended, for the checker.
SELECT id, state FROM jobs WHERE state IN ('waiting', 'running', 'parked') ORDER BY id LIMIT :most;
