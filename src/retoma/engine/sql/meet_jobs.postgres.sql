-- Look at the first of the waiting, gates or not, and hold them until it is decided who may run.
-- Twin: rows are locked here, and skipped where another runner holds them; SQLite has one writer.
WITH queues AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text)
    WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
      AND (SELECT value FROM meta WHERE name = 'pauses') = CAST(:pauses AS text)
), plain AS MATERIALIZED (
    SELECT w.* FROM queues q CROSS JOIN LATERAL (
        SELECT id, lost, batch, limit_key, kind, version, epoch, priority, turn FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
          AND lost < 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
              CAST(:knows AS json))))
        ORDER BY priority, turn, id LIMIT :meet FOR UPDATE SKIP LOCKED
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :meet
), suspect AS MATERIALIZED (
    SELECT w.* FROM queues q CROSS JOIN LATERAL (
        SELECT id, lost, batch, limit_key, kind, version, epoch, priority, turn FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
          AND lost >= 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
              CAST(:knows AS json))))
        ORDER BY priority, turn, id LIMIT :suspects FOR UPDATE SKIP LOCKED
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects
)
SELECT m.id, m.lost >= 2, m.batch, m.limit_key, m.kind || '@' || m.version, m.epoch > 0
FROM (SELECT * FROM plain UNION ALL SELECT * FROM suspect) m
ORDER BY m.priority, m.turn, m.id;
