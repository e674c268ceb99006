-- Hand waiting jobs to a living runner, at most one suspect among them. Each claim is a new epoch.
-- Twin: SQLite has no data-modifying CTE, so what was chosen stands in a temp table; nor LATERAL: a
-- queue's first rows are a list of ids that `IN` looks up. No hint: there are no dead entries here.
-- CROSS JOIN keeps the order: after ANALYZE a temp table is taken for larger than jobs.
-- What has a gate before it is left where it stands; a last row of nothing says that some was met.
-- Nothing for one who has not heard of the latest pause: a last row with a 1 says so (decision 0057).
CREATE TEMP TABLE IF NOT EXISTS picked (id INTEGER PRIMARY KEY, gated integer);

DELETE FROM temp.picked;

INSERT INTO temp.picked
SELECT j.id, j.limit_key IS NOT NULL OR coalesce(
    j.batch IN (SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL), false)
    OR o.value -> 'holding' IS NOT NULL AND j.kind || '@' || j.version IN (
        SELECT value FROM json_each(o.value, '$.holding'))
FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost < 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :share)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :slots;

INSERT INTO temp.picked
SELECT j.id, j.limit_key IS NOT NULL OR coalesce(
    j.batch IN (SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL), false)
    OR o.value -> 'holding' IS NOT NULL AND j.kind || '@' || j.version IN (
        SELECT value FROM json_each(o.value, '$.holding'))
FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost >= 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :suspects;

INSERT INTO events (job, seq, epoch, type, at, actor)
SELECT j.id, j.seq + 1, j.epoch + 1, 'claimed', (SELECT clock()), :boot
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
WHERE NOT p.gated;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, minute, n)
SELECT :boot, j.batch, j.kind, 'waiting', 'running', 'claimed',
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
WHERE NOT p.gated
GROUP BY j.batch, j.kind;

UPDATE jobs SET state = 'running', runner = :boot, epoch = epoch + 1, seq = seq + 1,
    failures = failures + 1, started_at = (SELECT clock()), reason = NULL
WHERE id IN (SELECT id FROM temp.picked WHERE NOT gated);

SELECT j.id, j.epoch, j.kind, j.version, j.batch, j.generation, j.fresh_from, j.failures, j.lost,
       j.released, j.checkpoint, j.correlation,
       (j.deadline - (SELECT clock())) / 1000000.0 AS time_left, j.payload, j.queue, j.priority,
       j.turn, j.limit_key
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
WHERE NOT p.gated
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE EXISTS (SELECT 1 FROM temp.picked WHERE gated)
UNION ALL
SELECT NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE (SELECT value FROM meta WHERE name = 'pauses') <> :pauses;
