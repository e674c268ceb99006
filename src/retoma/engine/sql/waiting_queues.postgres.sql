-- Of each of these queues the first waiting job that this runner knows: which queues have work.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
WITH known AS MATERIALIZED (
    SELECT ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))) AS tags
), queues AS MATERIALIZED (
    SELECT queue FROM json_array_elements_text(CAST(:queues AS json)) AS q(queue)
)
SELECT w.priority, w.turn, w.id, q.queue FROM known k CROSS JOIN queues q CROSS JOIN LATERAL (
    SELECT priority, turn, id FROM jobs
    WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND kind || '@' || version = ANY(k.tags)
    ORDER BY priority, turn, id LIMIT 1
) w
UNION ALL
SELECT w.priority, w.turn, w.id, q.queue FROM known k CROSS JOIN queues q CROSS JOIN LATERAL (
    SELECT priority, turn, id FROM jobs
    WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
      AND kind || '@' || version = ANY(k.tags)
    ORDER BY priority, turn, id LIMIT :suspects
) w;
