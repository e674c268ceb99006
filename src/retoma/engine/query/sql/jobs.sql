-- name: job_attempts
-- The claims of one job and how each ended.
SELECT epoch, runner, claimed_at, ended_at, ended FROM attempts WHERE job = :job ORDER BY epoch;

-- name: job_events
-- The timeline of one job, from a line on, as many lines as are wanted.
SELECT seq, epoch, type, at, actor, details FROM events
WHERE job = :job AND seq > :after ORDER BY seq
LIMIT coalesce(CAST(:limit AS bigint), 9223372036854775807);

-- name: job_steps
-- What one job has kept.
SELECT name, version, key, state, generation, epoch, saved_at, value, cost
FROM steps WHERE job = :job ORDER BY saved_at, name, key;

-- name: last_attempts
-- The newest claims of one job and how each ended.
SELECT epoch, runner, claimed_at, ended_at, ended FROM attempts
WHERE job = :job ORDER BY epoch DESC
LIMIT :limit;

-- name: last_events
-- The newest lines of one job's timeline, or those before a line of it.
SELECT seq, epoch, type, at, actor, details FROM events
WHERE job = :job AND seq < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY seq DESC
LIMIT :limit;

-- name: last_steps
-- What one job has kept last, each value cut to what a person reads.
SELECT name, version, key, state, generation, epoch, saved_at,
       substr(CAST(value AS text), 1, :most) AS value, cost
FROM steps WHERE job = :job
ORDER BY saved_at IS NULL DESC, saved_at DESC, name, key
LIMIT :limit;

-- name: list_batch_ends
-- Jobs of a batch that ended in an unusual way or are parked, newest first, by their own index.
SELECT id FROM jobs
WHERE batch = :batch AND state = :state AND state IN ('parked', 'skipped', 'dead', 'canceled')
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
ORDER BY id DESC LIMIT :limit;

-- name: list_done
-- Done jobs of a kind, newest first, by their own index.
SELECT id FROM jobs
WHERE kind = :kind AND state = 'done'
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;

-- name: list_ends
-- Jobs of a kind that ended in an unusual way or are parked, newest first, by their own index.
SELECT id FROM jobs
WHERE kind = :kind AND state = :state AND state IN ('parked', 'skipped', 'dead', 'canceled')
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;

-- name: list_ids
-- The ids of jobs, newest first, a page at a time. Those of a batch lie between its first and its last.
SELECT id FROM jobs
WHERE (CAST(:before AS bigint) IS NULL OR id < :before)
  AND (CAST(:state AS text) IS NULL OR state = :state)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
  AND id >= CASE WHEN CAST(:batch AS bigint) IS NULL THEN 0
                 ELSE coalesce((SELECT first_job FROM batches WHERE id = :batch), 1) END
  AND id <= CASE WHEN CAST(:batch AS bigint) IS NULL THEN 9223372036854775807
                 ELSE coalesce((SELECT last_job FROM batches WHERE id = :batch), 0) END
ORDER BY id DESC LIMIT :limit;

-- name: list_jobs
-- Jobs, newest first, a page at a time. Those of a batch lie between its first and its last.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn IS NOT NULL AS due, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs
WHERE (CAST(:before AS bigint) IS NULL OR id < :before)
  AND (CAST(:state AS text) IS NULL OR state = :state)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
  AND id >= CASE WHEN CAST(:batch AS bigint) IS NULL THEN 0
                 ELSE coalesce((SELECT first_job FROM batches WHERE id = :batch), 1) END
  AND id <= CASE WHEN CAST(:batch AS bigint) IS NULL THEN 9223372036854775807
                 ELSE coalesce((SELECT last_job FROM batches WHERE id = :batch), 0) END
ORDER BY id DESC LIMIT :limit;

-- name: list_running
-- Jobs that runners hold, newest first: as many are looked at as there are slots in use.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH held AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE runner > ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
)
SELECT DISTINCT id FROM held ORDER BY id DESC LIMIT :limit;

-- name: list_waiting
-- Waiting jobs where few wait, newest first: found by the indices of claims, whatever has ended.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH waiting AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2 AND queue >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2 AND queue >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NULL AND queue >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND aside >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
)
SELECT DISTINCT id FROM waiting ORDER BY id DESC LIMIT :limit;
