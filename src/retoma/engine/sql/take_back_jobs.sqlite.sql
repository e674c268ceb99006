-- Take back what lost runners held, a bite at a time. The epoch stays; the next claim adds one.
-- Twin: SQLite has no data-modifying CTE; what is taken back stands in a temp table first.
-- The third loss in a row buries a suspect as poison; a job to be canceled is not tried again,
-- unless remote work of it must be stopped first.
CREATE TEMP TABLE IF NOT EXISTS back (
    job integer, epoch integer, seq integer, event text, state text, batch integer,
    kind text, lost integer, released integer);

DELETE FROM temp.back;

INSERT INTO temp.back
SELECT j.id, j.epoch, j.seq + 1,
       CASE WHEN j.cancel_at IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM steps s
                WHERE s.job = j.id AND s.name >= 'remote:' AND s.name < 'remote;'
                  AND s.state IN ('begun', 'saved')) THEN 'canceled'
            WHEN r.state = 'gone' THEN 'released'
            WHEN j.lost >= 2 THEN 'buried' ELSE 'lost' END,
       CASE WHEN j.cancel_at IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM steps s
                WHERE s.job = j.id AND s.name >= 'remote:' AND s.name < 'remote;'
                  AND s.state IN ('begun', 'saved')) THEN 'canceled'
            WHEN r.state = 'gone' THEN 'waiting'
            WHEN j.lost >= 2 THEN 'dead' ELSE 'waiting' END,
       j.batch, j.kind, j.lost + (r.state = 'lost'), j.released + (r.state = 'gone')
FROM runners r CROSS JOIN jobs j ON j.runner = r.boot
WHERE r.state IN ('lost', 'gone') AND j.runner IS NOT NULL AND j.state = 'running'
ORDER BY j.id LIMIT :bite;

INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT job, seq, epoch, event, (SELECT clock()), :actor,
       CASE WHEN event = 'buried' THEN '{"reason":"poison","code":"poison"}' END
FROM temp.back;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, code, minute, n)
SELECT :actor, batch, kind, 'running', state, CASE WHEN state = 'dead' THEN 'poison' END,
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM temp.back GROUP BY batch, kind, state;

UPDATE jobs SET state = b.state, reason = CASE WHEN b.state = 'dead' THEN 'poison' END,
    code = CASE WHEN b.state = 'dead' THEN 'poison' END, lost = b.lost, released = b.released,
    failures = failures - 1, seq = b.seq, runner = NULL, turn = NULL, run_at = (SELECT clock()),
    ended_at = CASE WHEN b.state <> 'waiting' THEN (SELECT clock()) END
FROM temp.back b
WHERE jobs.id = b.job AND jobs.epoch = b.epoch
RETURNING id, jobs.epoch, jobs.state, queue, limit_key;
