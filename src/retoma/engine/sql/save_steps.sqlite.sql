-- Keep steps, many at a time. Touches nothing whose runner or epoch has passed.
-- Twin: SQLite has no data-modifying CTE; what may be kept stands in a temp table first.
-- Rows of one job are folded: one update of the job, its rows numbered as they were asked for.
CREATE TEMP TABLE IF NOT EXISTS kept (
    job integer, epoch integer, name text, version integer, key text, state text, value text,
    cost text, generation integer, seq integer, place integer);

DELETE FROM temp.kept;

INSERT INTO temp.kept
SELECT j.id, j.epoch, o.value ->> 'name', o.value ->> 'version', o.value ->> 'key',
       o.value ->> 'state', o.value -> 'value', o.value -> 'cost', j.generation,
       j.seq + row_number() OVER (PARTITION BY j.id ORDER BY o.key), o.key
FROM json_each(:rows) o
JOIN jobs j ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'
           AND j.state = 'running' AND +j.runner = :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');

INSERT INTO steps (job, name, version, key, generation, epoch, state, begun_at, saved_at,
                   value, cost)
SELECT job, name, version, key, generation, epoch, state,
       CASE WHEN state = 'begun' THEN (SELECT clock()) END,
       CASE WHEN state = 'saved' THEN (SELECT clock()) END, value, cost
FROM temp.kept
WHERE true
ON CONFLICT (job, name, version, key) DO UPDATE
SET generation = excluded.generation, epoch = excluded.epoch, state = excluded.state,
    begun_at = coalesce(excluded.begun_at, steps.begun_at), saved_at = excluded.saved_at,
    value = excluded.value, cost = excluded.cost
WHERE steps.state = 'begun' OR steps.generation < excluded.generation;

INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT job, seq, epoch, 'step_' || state, (SELECT clock()), :boot,
       json_object('step', name, 'key', key)
FROM temp.kept;

UPDATE jobs SET seq = k.seq, checkpoint = k.name, lost = 0, progress_at = (SELECT clock())
FROM (SELECT job, epoch, name, max(seq) AS seq FROM temp.kept GROUP BY job, epoch) k
WHERE jobs.id = k.job AND jobs.epoch = k.epoch
RETURNING id, epoch, cancel_at IS NOT NULL;
