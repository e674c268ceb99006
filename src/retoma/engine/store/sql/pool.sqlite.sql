-- name: end_holds
-- Free those of these things whose hold is over, as a statement sees it that begins under their locks.
-- Twin: sets arrive by json_array_elements there, by json_each here.
UPDATE pool_items AS i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL
WHERE i.id IN (SELECT value FROM json_each(:items))
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
RETURNING id, name, value, last_job, used_at;

-- name: free_things
-- Things of a pool that could be held now: the longest rested first, or by chance, those that fail last.
-- Twin: they are locked there; SQLite has one writer.
SELECT i.id, i.name, i.value, i.last_job, i.used_at
FROM pools p CROSS JOIN pool_items i ON i.pool = p.name
WHERE p.name = :pool AND i.job IS NULL AND i.state = 'on'
  AND (p.use_cap IS NULL OR i.uses < p.use_cap)
  AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
ORDER BY CASE WHEN p.pick = 'random' THEN i.failures END,
         CASE WHEN p.pick = 'random' THEN (i.id * :dice) % 1000003 END, i.used_at NULLS FIRST, i.id
LIMIT :n;

-- name: held_things
-- What these jobs hold: for as long as they live, until a release, or by these epochs.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
SELECT i.job, i.id, i.pool, i.name, i.value, i.scope
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job'
CROSS JOIN pool_items i ON i.job = j.id
WHERE i.scope = 'release' OR i.scope = 'job' AND i.generation = j.generation
   OR i.scope = 'attempt' AND i.epoch = o.value ->> 'epoch'
ORDER BY i.id;

-- name: hold_things
-- Give things that nobody holds to jobs; or leave a job one it holds, for longer.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
-- The runner's right to each job and its epoch was checked in this transaction. What would outlive its
-- job is not given to one that is to be canceled: nobody would be left to let go of it.
UPDATE pool_items AS i SET job = o.value ->> 'job', epoch = o.value ->> 'epoch',
    generation = o.value ->> 'generation', scope = o.value ->> 'scope',
    uses = i.uses + CASE WHEN i.job IS NULL THEN 1 ELSE 0 END,
    used_at = CASE WHEN i.job IS NULL THEN (SELECT clock()) ELSE i.used_at END,
    last_job = o.value ->> 'job'
FROM json_each(:rows) o
WHERE i.id = o.value ->> 'item'
  AND (i.job IS NULL OR i.job = o.value ->> 'job' AND i.epoch = o.value ->> 'epoch')
  AND (i.job IS NOT NULL OR o.value ->> 'scope' <> 'release'
       OR (SELECT cancel_at FROM jobs WHERE id = o.value ->> 'job') IS NULL)
RETURNING id;

-- name: let_go
-- Let go of things, each by whoever holds it: its job, by this epoch where the hold is an attempt's.
-- Twin: sets arrive by json_to_recordset there, by json_each here, read once into a temp table.
-- The runner's right to each job and its epoch was checked in this transaction.
-- What works has no failures. What fails again in the same hands, or in those of a kind, that nothing
-- else of the pool has worked for meanwhile, has no more than before: that is not the thing's fault.
CREATE TEMP TABLE IF NOT EXISTS letting (
    item integer, job integer, epoch integer, worked integer, by text, kind text,
    used integer);

DELETE FROM temp.letting;

INSERT INTO temp.letting
SELECT value ->> 'item', value ->> 'job', value ->> 'epoch', value ->> 'worked', value ->> 'by',
       value ->> 'kind', value ->> 'used'
FROM json_each(:rows);

UPDATE pool_items AS i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL,
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
FROM temp.letting s, pools p
WHERE i.id = s.item AND p.name = i.pool
  AND i.job = s.job AND (i.scope <> 'attempt' OR i.epoch = s.epoch)
RETURNING id, coalesce(failures >= (SELECT off_after FROM pools WHERE name = pool), false);

-- name: lock_pools
-- These pools, for whoever counts what is on in them: nobody else does so before the transaction ends.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT name FROM pools WHERE name IN (SELECT value FROM json_each(:pools)) ORDER BY name;

-- name: may_hold
-- Which of these claims this runner still has; nobody changes that before the transaction ends.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT j.id, j.epoch
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'
                 AND j.state = 'running' AND +j.runner = :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');

-- name: named_items
-- Things of a pool by their names: how each is switched, and why. Held until the transaction ends.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT id, name, state, reason FROM pool_items
WHERE pool = :pool AND name IN (SELECT value FROM json_each(:names))
ORDER BY id;

-- name: over_holds
-- Things of a pool whose hold seems to be over: its attempt has ended, or its job.
-- Twin: they are locked there; SQLite has one writer.
SELECT i.id FROM pool_items i
WHERE i.pool = :pool AND i.job IS NOT NULL AND i.state = 'on'
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
ORDER BY i.used_at LIMIT :n;

-- name: put_items
-- Add things to a pool, or change what they are; who holds one holds it on. Those that changed.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO pool_items (pool, name, value, vendor)
SELECT :pool, o.value ->> 'name', o.value -> 'value', o.value ->> 'vendor'
FROM json_each(:rows) o
WHERE true
ON CONFLICT (pool, name) DO UPDATE SET value = excluded.value, vendor = excluded.vendor
WHERE pool_items.value <> excluded.value OR pool_items.vendor <> excluded.vendor
RETURNING name;

-- name: switch_items
-- Switch things on or off by hand, with a reason. Switched on, they begin anew.
-- Twin: sets arrive by json_array_elements there, by json_each here.
UPDATE pool_items SET state = :state, reason = :reason,
    failures = CASE WHEN :state = 'on' THEN 0 ELSE failures END,
    failed_from = CASE WHEN :state = 'on' THEN NULL ELSE failed_from END,
    failed_at = CASE WHEN :state = 'on' THEN NULL ELSE failed_at END,
    uses = CASE WHEN :state = 'on' AND state = 'off' THEN 0 ELSE uses END
WHERE id IN (SELECT value FROM json_each(:items));

-- name: tell_all
-- A line of the audit log for each of these subjects.
-- Twin: sets arrive by json_array_elements there, by json_each here.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, :verb, m.value, :details FROM json_each(:subjects) m;

-- name: tell_holds
-- Tell of things that jobs hold or let go of. Touches nothing whose runner or epoch has passed.
-- Twin: SQLite has no data-modifying CTE; of whom may be told stands in a temp table first (without
-- a key of its own: it would be looked into for every job there is).
-- A row is a job with all that is told of it, numbered in that order.
CREATE TEMP TABLE IF NOT EXISTS telling (
    job integer, epoch integer, seq integer, n integer, told text);

DELETE FROM temp.telling;

INSERT INTO temp.telling
SELECT j.id, j.epoch, j.seq, o.value ->> 'n', o.value -> 'told'
FROM json_each(:rows) o
JOIN jobs j ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'
           AND j.state = 'running' AND +j.runner = :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');

INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT t.job, t.seq + 1 + m.key, t.epoch, :type, (SELECT clock()), :boot, m.value
FROM temp.telling t JOIN json_each(t.told) m;

UPDATE jobs SET seq = t.seq + t.n
FROM temp.telling t
WHERE jobs.id = t.job AND jobs.epoch = t.epoch
RETURNING id, jobs.epoch;
