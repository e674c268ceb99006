-- When the next scheduled job of these queues is due, and what time it is.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
SELECT min((SELECT min(run_at) FROM jobs
            WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL)), (SELECT clock())
FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text);
