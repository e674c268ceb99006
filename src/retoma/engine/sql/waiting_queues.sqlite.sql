-- Of each of these queues the first waiting job that this runner knows: which queues have work.
-- Twin: SQLite has no LATERAL; sets of rows arrive by json_array_elements_text there.
SELECT w.priority, w.turn, w.id, w.queue FROM json_each(:queues) o CROSS JOIN jobs w ON w.id = (
    SELECT f.id FROM jobs f
    WHERE f.queue = o.value AND f.state = 'waiting' AND f.turn IS NOT NULL AND f.aside IS NULL
      AND f.lost < 2 AND f.kind || '@' || f.version IN (SELECT value FROM json_each(:knows))
    ORDER BY f.priority, f.turn, f.id LIMIT 1)
UNION ALL
SELECT w.priority, w.turn, w.id, w.queue FROM json_each(:queues) o CROSS JOIN jobs w ON w.id IN (
    SELECT f.id FROM jobs f
    WHERE f.queue = o.value AND f.state = 'waiting' AND f.turn IS NOT NULL AND f.aside IS NULL
      AND f.lost >= 2 AND f.kind || '@' || f.version IN (SELECT value FROM json_each(:knows))
    ORDER BY f.priority, f.turn, f.id LIMIT :suspects);
