-- Look at the first of the waiting, gates or not, and hold them until it is decided who may run.
-- Twin: rows are locked there, and skipped where another runner holds them; SQLite has one writer.
CREATE TEMP TABLE IF NOT EXISTS met (id INTEGER PRIMARY KEY);

DELETE FROM temp.met;

INSERT INTO temp.met
SELECT j.id FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost < 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :meet)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :meet;

INSERT INTO temp.met
SELECT j.id FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost >= 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :suspects;

SELECT j.id, j.lost >= 2, j.batch, j.limit_key, j.kind || '@' || j.version, j.epoch > 0
FROM temp.met p CROSS JOIN jobs j ON j.id = p.id
ORDER BY j.priority, j.turn, j.id;
