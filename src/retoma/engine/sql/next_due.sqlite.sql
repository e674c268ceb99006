-- When the next scheduled job of these queues is due, and what time it is.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT min((SELECT min(run_at) FROM jobs
            WHERE queue = o.value ->> 'queue' AND state = 'waiting' AND turn IS NULL)),
       (SELECT clock())
FROM json_each(:queues) o;
