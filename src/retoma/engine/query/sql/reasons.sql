-- name: explain_job
-- What explains a job beside its row: its place in line, its deadline, its batch, and what time it is.
SELECT j.turn, j.deadline, j.limit_key, b.name, b.paused_at, (SELECT clock())
FROM jobs j LEFT JOIN batches b ON b.id = j.batch
WHERE j.id = :job;

-- name: explain_pool
-- The things of a pool: how many, how many are held, are off, rest, or were used as often as they may.
SELECT count(*),
       coalesce(sum(CASE WHEN now_is = 'held' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN now_is = 'off' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN now_is = 'resting' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN now_is = 'used up' THEN 1 ELSE 0 END), 0)
FROM (
    SELECT CASE
        WHEN i.scope = 'release'
             OR i.scope = 'attempt' AND EXISTS (
                 SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
             OR i.scope = 'job' AND EXISTS (
                 SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                   AND j.state IN ('waiting', 'running', 'parked')) THEN 'held'
        WHEN i.state = 'off' THEN 'off'
        WHEN i.uses >= p.use_cap THEN 'used up'
        WHEN i.ready_at > (SELECT clock()) THEN 'resting'
        ELSE 'free' END AS now_is
    FROM pools p JOIN pool_items i ON i.pool = p.name WHERE p.name = :pool
) seen;

-- name: get_limit
-- A limit: how many may run, and how many do.
SELECT coalesce(by_hand, cap), used FROM limits WHERE key = :key;

-- name: jobs_before
-- How many stand before a place in line, up to a bound: nobody counts a long queue to its end.
SELECT count(*) FROM (
    SELECT 1 FROM jobs
    WHERE queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND (priority, turn, id) < (:priority, CAST(:turn AS bigint), CAST(:job AS bigint))
    LIMIT :bound) before_it;

-- name: last_move
-- The last move of a job, and who made it.
SELECT type, at, actor, details FROM events
WHERE job = :job AND type NOT IN
    ('step_begun', 'step_saved', 'step_failed', 'step_ended', 'cancel_requested', 'stalled',
     'evidence', 'held', 'freed', 'discarded')
ORDER BY seq DESC LIMIT 1;

-- name: last_stall
-- When this claim of a job was last seen to stand still.
SELECT max(at) FROM events WHERE job = :job AND epoch = :epoch AND type = 'stalled';

-- name: runner_name
-- What people call the runner of a boot.
SELECT name FROM runners WHERE boot = :boot;
