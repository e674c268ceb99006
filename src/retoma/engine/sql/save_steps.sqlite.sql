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
