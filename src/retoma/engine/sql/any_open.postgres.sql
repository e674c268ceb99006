-- Whether anything of these queues that this runner knows waits or runs; set aside does not count.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
-- What waits for its time in a paused batch counts no more than what of it is set aside already.
WITH known AS MATERIALIZED (
    SELECT ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))) AS tags
)
SELECT 1 FROM known k CROSS JOIN json_array_elements_text(CAST(:queues AS json)) AS q(queue)
WHERE EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost < 2
                AND kind || '@' || version = ANY(k.tags))
   OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
                AND kind || '@' || version = ANY(k.tags))
   OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL
                AND kind || '@' || version = ANY(k.tags)
                AND NOT coalesce(batch = ANY(ARRAY(
                    SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL)), false))
   OR EXISTS (SELECT FROM runners r JOIN jobs j ON j.runner = r.boot
              WHERE j.queue = q.queue AND j.kind || '@' || j.version = ANY(k.tags))
LIMIT 1;
