-- name: count_refused
-- Late writes that changed nothing, counted.
-- Twin: minutes are cut differently.
INSERT INTO tallies (runner, kind, to_state, event, minute, n)
VALUES (:boot, :kind, 'refused', 'refused', (SELECT clock()) / 60000000 * 60000000, :n);

-- name: hold_jobs
-- Hold the rows of many jobs for this transaction, where this runner and epoch still have them; which are wanted.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
UPDATE jobs SET progress_at = (SELECT clock())
FROM (SELECT value ->> 'job' AS job, value ->> 'epoch' AS epoch FROM json_each(:rows)) t
WHERE jobs.id = t.job AND jobs.epoch = t.epoch AND jobs.state = 'running'
  AND +jobs.runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING id, jobs.epoch, cancel_at IS NULL;

-- name: report_progress
-- How far jobs are, the last word of each. Touches nothing whose runner or epoch has passed.
-- Twin: sets of rows arrive by json_to_recordset there, by jsonb_each here.
UPDATE jobs SET progress = t.progress, note = t.note, progress_at = (SELECT clock())
FROM (SELECT value ->> 'job' AS job, value ->> 'epoch' AS epoch,
             value ->> 'progress' AS progress, value ->> 'note' AS note
      FROM jsonb_each(:rows)) t
WHERE jobs.id = t.job AND jobs.epoch = t.epoch AND jobs.state = 'running'
  AND +jobs.runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING id, jobs.epoch, cancel_at IS NOT NULL;

-- name: save_steps
-- Keep steps, many at a time. Touches nothing whose runner or epoch has passed.
-- Twin: SQLite has no data-modifying CTE; what may be kept stands in a temp table first.
-- A row is a job with its first step; others of the same job travel in `more`, numbered after it.
CREATE TEMP TABLE IF NOT EXISTS kept (
    job integer, epoch integer, generation integer, seq integer, name text, version integer,
    key text, state text, value text, cost text, told text, n integer, last text, more text);

DELETE FROM temp.kept;

INSERT INTO temp.kept
SELECT j.id, j.epoch, j.generation, j.seq + 1, o.value ->> 'name', o.value ->> 'version',
       o.value ->> 'key', o.value ->> 'state', o.value -> 'value', o.value -> 'cost',
       o.value -> 'told', o.value ->> 'n', o.value ->> 'last', o.value -> 'more'
FROM jsonb_each(:rows) o
JOIN jobs j ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'
           AND j.state = 'running' AND +j.runner = :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');

INSERT INTO temp.kept
SELECT k.job, k.epoch, k.generation, k.seq + 1 + m.key, m.value ->> 'name',
       m.value ->> 'version', m.value ->> 'key', m.value ->> 'state', m.value -> 'value',
       m.value -> 'cost', m.value -> 'told', NULL, NULL, NULL
FROM temp.kept k JOIN jsonb_each(k.more) m
WHERE k.more IS NOT NULL;

INSERT INTO steps (job, name, version, key, generation, epoch, state, begun_at, saved_at,
                   value, cost)
SELECT job, name, version, key, generation, epoch, state,
       CASE WHEN state = 'begun' THEN (SELECT clock()) END,
       CASE WHEN state IN ('saved', 'ended') THEN (SELECT clock()) END,
       CASE WHEN state = 'saved' THEN value ELSE nullif(value, 'null') END, cost
FROM temp.kept
WHERE true
ON CONFLICT (job, name, version, key) DO UPDATE
SET generation = excluded.generation, epoch = excluded.epoch, state = excluded.state,
    begun_at = coalesce(excluded.begun_at, steps.begun_at), saved_at = excluded.saved_at,
    value = excluded.value, cost = excluded.cost
WHERE steps.state IN ('begun', 'failed') OR excluded.state = 'ended'
   OR steps.generation < excluded.generation
   OR excluded.state = 'saved' AND steps.name >= 'remote:' AND steps.name < 'remote;';

INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT job, seq, epoch, 'step_' || state, (SELECT clock()), :boot, told FROM temp.kept;

UPDATE jobs SET seq = jobs.seq + k.n, checkpoint = k.last, lost = 0,
    progress_at = (SELECT clock())
FROM temp.kept k
WHERE jobs.id = k.job AND jobs.epoch = k.epoch AND k.n IS NOT NULL
RETURNING id, jobs.epoch, cancel_at IS NOT NULL;

-- name: settle_jobs
-- End many claims, each in its own way. Touches nothing whose runner or epoch has passed.
-- Twin: SQLite has no data-modifying CTE; what may end stands in a temp table first (without a
-- key of its own: it would be looked into for every job there is).
-- A job somebody wants canceled ends so, unless its story got through first: never a retry.
-- Or unless it waits on to have its remote work stopped first: what the steps say then, not its runner,
-- which may not have heard that the last of them was saved.
-- Nobody waits past the job's deadline: it is taken up then, and buried.
CREATE TEMP TABLE IF NOT EXISTS ended (
    job integer, epoch integer, seq integer, event text, state text, reason text,
    code text, after real, result text, details text, batch integer, kind text, ms real,
    aside text, at_work integer);

DELETE FROM temp.ended;

INSERT INTO temp.ended
SELECT j.id, j.epoch, j.seq + 1, o.value ->> 'event', o.value ->> 'state',
       o.value ->> 'reason', o.value ->> 'code', o.value ->> 'after', o.value -> 'result',
       CASE WHEN j.cancel_at IS NULL OR o.value ->> 'state' NOT IN ('done', 'skipped')
            THEN o.value -> 'details' ELSE json_object('too_late', json('true')) END,
       j.batch, j.kind, ((SELECT clock()) - j.started_at) / 1000.0, o.value ->> 'aside',
       CASE WHEN o.value ->> 'stopping' THEN (
           SELECT 1 FROM steps s
           WHERE s.job = j.id AND s.name >= 'remote:' AND s.name < 'remote;'
             AND s.state IN ('begun', 'saved') LIMIT 1) END
FROM jsonb_each(:rows) o
JOIN jobs j ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'
           AND j.state = 'running' AND +j.runner = :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');

UPDATE temp.ended SET event = 'canceled', state = 'canceled', reason = NULL, code = NULL
WHERE state NOT IN ('done', 'skipped') AND at_work IS NULL
  AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = ended.job AND j.cancel_at IS NOT NULL);

INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT job, seq, epoch, event, (SELECT clock()), :boot, nullif(details, 'null')
FROM temp.ended;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, code, minute, bucket, n, ms)
SELECT :boot, batch, kind, 'running', state, event, CASE WHEN state = 'dead' THEN code END,
       (SELECT clock()) / 60000000 * 60000000, CAST(floor(log2(max(ms, 1))) AS integer),
       count(*), sum(ms)
FROM temp.ended
GROUP BY batch, kind, state, event, 7, 9;

UPDATE jobs SET state = e.state, reason = e.reason, code = e.code,
    result = CASE WHEN e.state = 'done' THEN e.result END, seq = e.seq, runner = NULL,
    failures = failures - CASE WHEN e.event IN ('failed', 'buried') THEN 0 ELSE 1 END,
    released = released + CASE WHEN e.event = 'released' THEN 1 ELSE 0 END,
    lost = 0, turn = NULL, aside = e.aside,
    run_at = CASE WHEN e.state = 'waiting'
        THEN min(clock_in(coalesce(e.after, 0)), coalesce(deadline, 9223372036854775807)) END,
    ended_at = CASE WHEN e.state IN ('done', 'skipped', 'dead', 'canceled')
                    THEN (SELECT clock()) END
FROM temp.ended e
WHERE jobs.id = e.job AND jobs.epoch = e.epoch
RETURNING id, jobs.epoch, jobs.state;
