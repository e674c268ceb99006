-- Hand waiting jobs of one queue to a living runner, at most one suspect. Each is a new epoch.
-- Twin: SQLite has no LATERAL and no data-modifying CTE; what was chosen stands in a temp table.
-- CROSS JOIN keeps the order: after ANALYZE a temp table is taken for larger than jobs.
CREATE TEMP TABLE IF NOT EXISTS picked (id INTEGER PRIMARY KEY);

DELETE FROM temp.picked;

INSERT INTO temp.picked
SELECT id FROM jobs
WHERE queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
  AND lost < 2 AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND kind || '@' || version IN (SELECT value FROM json_each(:knows))
ORDER BY priority, turn, id LIMIT :slots;

INSERT INTO temp.picked
SELECT id FROM jobs
WHERE queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
  AND lost >= 2 AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND kind || '@' || version IN (SELECT value FROM json_each(:knows))
ORDER BY priority, turn, id LIMIT :suspects;

INSERT INTO events (job, seq, epoch, type, at, actor)
SELECT j.id, j.seq + 1, j.epoch + 1, 'claimed', (SELECT clock()), :boot
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, minute, n)
SELECT :boot, j.batch, j.kind, 'waiting', 'running', (SELECT clock()) / 60000000 * 60000000,
       count(*)
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
GROUP BY j.batch, j.kind;

UPDATE jobs SET state = 'running', runner = :boot, epoch = epoch + 1, seq = seq + 1,
    failures = failures + 1, started_at = (SELECT clock()), reason = NULL
WHERE id IN (SELECT id FROM temp.picked)
RETURNING id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
    checkpoint, correlation, deadline, payload, queue, priority, turn;
