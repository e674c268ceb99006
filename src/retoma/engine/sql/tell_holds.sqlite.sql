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
