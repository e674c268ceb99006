-- Whether anything of these queues that this runner knows waits or runs; set aside does not count.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
-- What waits for its time in a paused batch counts no more than what of it is set aside already.
SELECT 1 FROM json_each(:queues) AS q
WHERE EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost < 2
                AND kind || '@' || version IN (SELECT value FROM json_each(:knows)))
   OR EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
                AND kind || '@' || version IN (SELECT value FROM json_each(:knows)))
   OR EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting' AND turn IS NULL
                AND kind || '@' || version IN (SELECT value FROM json_each(:knows))
                AND NOT coalesce(batch IN (
                    SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL), false))
   OR EXISTS (SELECT 1 FROM runners r CROSS JOIN jobs j ON j.runner = r.boot
              WHERE j.runner IS NOT NULL AND j.queue = q.value
                AND j.kind || '@' || j.version IN (SELECT value FROM json_each(:knows)))
LIMIT 1;
