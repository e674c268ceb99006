-- name: end_holds
-- Free those of these things whose hold is over, as a statement sees it that begins under their locks.
-- Twin: sets arrive by json_array_elements here, by json_each there.
UPDATE pool_items AS i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL
WHERE i.id = ANY(ARRAY(
    SELECT CAST(m.id AS bigint) FROM json_array_elements_text(CAST(:items AS json)) AS m(id)))
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
RETURNING i.id, i.name, i.value, i.last_job, i.used_at;

-- name: free_things
-- Things of a pool that could be held now: the longest rested first, or by chance, those that fail last.
-- Twin: they are locked here, and passed over where somebody else is about to take them.
SELECT i.id, i.name, i.value, i.last_job, i.used_at
FROM pool_items i JOIN pools p ON p.name = i.pool
WHERE i.pool = :pool AND i.job IS NULL AND i.state = 'on'
  AND (p.use_cap IS NULL OR i.uses < p.use_cap)
  AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
ORDER BY CASE WHEN p.pick = 'random' THEN i.failures END,
         CASE WHEN p.pick = 'random' THEN (i.id * :dice) % 1000003 END, i.used_at NULLS FIRST, i.id
LIMIT :n FOR UPDATE OF i SKIP LOCKED;

-- name: held_things
-- What these jobs hold: for as long as they live, until a release, or by these epochs.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
SELECT i.job, i.id, i.pool, i.name, i.value, i.scope
FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer)
JOIN jobs j ON j.id = t.job
JOIN pool_items i ON i.job = t.job
WHERE i.scope = 'release' OR i.scope = 'job' AND i.generation = j.generation
   OR i.scope = 'attempt' AND i.epoch = t.epoch
ORDER BY i.id;

-- name: hold_things
-- Give things that nobody holds to jobs; or leave a job one it holds, for longer.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
-- The runner's right to each job and its epoch was checked in this transaction. What would outlive its
-- job is not given to one that is to be canceled: nobody would be left to let go of it.
UPDATE pool_items i SET job = t.job, epoch = t.epoch, generation = t.generation, scope = t.scope,
    uses = i.uses + CASE WHEN i.job IS NULL THEN 1 ELSE 0 END,
    used_at = CASE WHEN i.job IS NULL THEN (SELECT clock()) ELSE i.used_at END, last_job = t.job
FROM json_to_recordset(CAST(:rows AS json)) AS t(item bigint, job bigint, epoch integer,
    generation integer, scope text)
WHERE i.id = t.item AND (i.job IS NULL OR i.job = t.job AND i.epoch = t.epoch)
  AND (i.job IS NOT NULL OR t.scope <> 'release'
       OR (SELECT cancel_at FROM jobs WHERE id = t.job) IS NULL)
RETURNING i.id;

-- name: let_go
-- Let go of things, each by whoever holds it: its job, by this epoch where the hold is an attempt's.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
-- The runner's right to each job and its epoch was checked in this transaction.
-- What works has no failures. What fails again in the same hands, or in those of a kind, that nothing
-- else of the pool has worked for meanwhile, has no more than before: that is not the thing's fault.
WITH sent AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(item bigint, job bigint,
        epoch integer, worked integer, by text, kind text, used integer)
), mine AS MATERIALIZED (
    SELECT id FROM pool_items WHERE id = ANY(ARRAY(SELECT item FROM sent)) ORDER BY id FOR UPDATE
)
UPDATE pool_items i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL,
    uses = i.uses - CASE WHEN s.used = 1 THEN 0 ELSE 1 END,
    ready_at = CASE WHEN s.used = 1 AND p.cool_down > 0 THEN clock_in(p.cool_down) END,
    failures = CASE
        WHEN s.worked IS NULL THEN i.failures
        WHEN s.worked = 1 THEN 0
        WHEN i.failures > 0 AND (i.failed_by = s.by AND (s.kind IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM pool_items o
            WHERE o.pool = i.pool AND o.id <> i.id AND o.worked_by = s.by
              AND o.worked_at >= i.failed_from))
          OR s.kind IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM pool_items o
            WHERE o.pool = i.pool AND o.id <> i.id AND o.worked_by = s.kind
              AND o.worked_at >= i.failed_from)) THEN i.failures
        ELSE i.failures + 1 END,
    failed_by = CASE WHEN s.worked IS NULL THEN i.failed_by WHEN s.worked = 0 THEN s.by END,
    failed_from = CASE WHEN s.worked IS NULL THEN i.failed_from
                       WHEN s.worked = 0 THEN coalesce(i.failed_from, (SELECT clock())) END,
    failed_at = CASE WHEN s.worked IS NULL THEN i.failed_at WHEN s.worked = 0 THEN (SELECT clock()) END,
    worked_by = CASE WHEN s.worked = 1 THEN coalesce(s.kind, s.by) ELSE i.worked_by END,
    worked_at = CASE WHEN s.worked = 1 THEN (SELECT clock()) ELSE i.worked_at END,
    score = CASE WHEN s.worked IS NULL THEN i.score ELSE 0.8 * i.score + 0.2 * s.worked END
FROM mine m JOIN sent s ON s.item = m.id, pools p
WHERE i.id = m.id AND p.name = i.pool
  AND i.job = s.job AND (i.scope <> 'attempt' OR i.epoch = s.epoch)
RETURNING i.id, coalesce(i.failures >= p.off_after, false);

-- name: lock_pools
-- These pools, for whoever counts what is on in them: nobody else does so before the transaction ends.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT name FROM pools
WHERE name = ANY(ARRAY(SELECT json_array_elements_text(CAST(:pools AS json))))
ORDER BY name FOR NO KEY UPDATE;

-- name: may_hold
-- Which of these claims this runner still has; nobody changes that before the transaction ends.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
-- The limits limit nothing: see save_steps.
SELECT j.id, j.epoch
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
          AS t(job bigint, epoch integer) LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
JOIN jobs j ON j.id = t.job AND j.epoch = t.epoch AND j.state = 'running'
           AND j.runner IS NOT DISTINCT FROM :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
ORDER BY j.id FOR UPDATE OF j;

-- name: named_items
-- Things of a pool by their names: how each is switched, and why. Held until the transaction ends.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT id, name, state, reason FROM pool_items
WHERE pool = :pool AND name = ANY(ARRAY(SELECT json_array_elements_text(CAST(:names AS json))))
ORDER BY id FOR UPDATE;

-- name: over_holds
-- Things of a pool whose hold seems to be over: its attempt has ended, or its job.
-- Twin: they are locked here. What holds them now is seen only by a statement that begins
-- afterwards: this one may have begun before the claim of whoever has just taken one.
SELECT i.id FROM pool_items i
WHERE i.pool = :pool AND i.job IS NOT NULL AND i.state = 'on'
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
ORDER BY i.used_at LIMIT :n FOR UPDATE OF i SKIP LOCKED;

-- name: put_items
-- Add things to a pool, or change what they are; who holds one holds it on. Those that changed.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO pool_items (pool, name, value, vendor)
SELECT :pool, t.name, t.value, t.vendor
FROM json_to_recordset(CAST(:rows AS json)) AS t(name text, value json, vendor text)
ORDER BY t.name COLLATE "C"
ON CONFLICT (pool, name) DO UPDATE SET value = excluded.value, vendor = excluded.vendor
WHERE CAST(pool_items.value AS text) <> CAST(excluded.value AS text)
   OR pool_items.vendor <> excluded.vendor
RETURNING name;

-- name: switch_items
-- Switch things on or off by hand, with a reason. Switched on, they begin anew.
-- Twin: sets arrive by json_array_elements here, by json_each there.
UPDATE pool_items SET state = :state, reason = :reason,
    failures = CASE WHEN :state = 'on' THEN 0 ELSE failures END,
    failed_from = CASE WHEN :state = 'on' THEN NULL ELSE failed_from END,
    failed_at = CASE WHEN :state = 'on' THEN NULL ELSE failed_at END,
    uses = CASE WHEN :state = 'on' AND state = 'off' THEN 0 ELSE uses END
WHERE id = ANY(ARRAY(
    SELECT CAST(m.id AS bigint) FROM json_array_elements_text(CAST(:items AS json)) AS m(id)));

-- name: tell_all
-- A line of the audit log for each of these subjects.
-- Twin: sets arrive by json_array_elements here, by json_each there.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, :verb, m.subject, CAST(:details AS json)
FROM json_array_elements_text(CAST(:subjects AS json)) AS m(subject);

-- name: tell_holds
-- Tell of things that jobs hold or let go of. Touches nothing whose runner or epoch has passed.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- A row is a job with all that is told of it, because an UPDATE touches its target once.
WITH sent AS (
    SELECT * FROM json_to_recordset(CAST(:rows AS json))
        AS t(job bigint, epoch integer, n integer, told json)
), held AS (
    UPDATE jobs j SET seq = j.seq + s.n
    FROM sent s
    WHERE j.id = s.job AND j.epoch = s.epoch AND j.state = 'running'
      AND j.runner IS NOT DISTINCT FROM :boot
      AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    RETURNING j.id, j.epoch, j.seq - s.n AS base, s.told
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT h.id, h.base + m.nth, h.epoch, :type, (SELECT clock()), :boot, m.details
    FROM held h CROSS JOIN LATERAL json_array_elements(h.told) WITH ORDINALITY AS m(details, nth)
)
SELECT id, epoch FROM held;
