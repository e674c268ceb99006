-- Whether anything of these queues waits or runs; set aside does not count.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT 1 FROM json_array_elements_text(CAST(:queues AS json)) AS q(queue)
WHERE EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost < 2)
   OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost >= 2)
   OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL)
   OR EXISTS (SELECT FROM runners r JOIN jobs j ON j.runner = r.boot WHERE j.queue = q.queue)
LIMIT 1;
