-- Hand those of the met that may run to a living runner. Each claim is a new epoch.
-- Twin: SQLite has no data-modifying CTE; who may run stands in a temp table first.
CREATE TEMP TABLE IF NOT EXISTS met (id INTEGER PRIMARY KEY);

DELETE FROM temp.met;

INSERT INTO temp.met
SELECT value FROM json_each(:jobs)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive';

INSERT INTO events (job, seq, epoch, type, at, actor)
SELECT j.id, j.seq + 1, j.epoch + 1, 'claimed', (SELECT clock()), :boot
FROM temp.met p CROSS JOIN jobs j ON j.id = p.id;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, minute, n)
SELECT :boot, j.batch, j.kind, 'waiting', 'running', 'claimed',
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM temp.met p CROSS JOIN jobs j ON j.id = p.id
GROUP BY j.batch, j.kind;

UPDATE jobs SET state = 'running', runner = :boot, epoch = epoch + 1, seq = seq + 1,
    failures = failures + 1, started_at = (SELECT clock()), reason = NULL
WHERE id IN (SELECT id FROM temp.met)
RETURNING id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
    checkpoint, correlation, (deadline - (SELECT clock())) / 1000000.0 AS time_left, payload, queue,
    priority, turn, limit_key;
