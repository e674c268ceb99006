-- What these jobs may read back: the steps of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
-- What a step cost is spared by a job that was stopped, not by one that left its story by itself.
-- The value of a saved step comes along where its job's values are few or small; else its size.
SELECT s.job, s.name, s.version, s.key, s.state,
       CASE WHEN octet_length(s.value) * j.seq <= :inline OR s.state <> 'saved'
                OR substr(s.name, 1, 7) = 'remote:' THEN s.value END AS value,
       CASE WHEN octet_length(s.value) * j.seq <= :inline OR s.state <> 'saved'
                OR substr(s.name, 1, 7) = 'remote:' THEN 0 ELSE octet_length(s.value) END AS unread,
       ((SELECT clock()) - coalesce(s.saved_at, s.begun_at)) / 1000000.0 AS age,
       ((SELECT clock()) - j.progress_at) / 1000000.0 AS quiet,
       j.cancel_at IS NOT NULL AS canceling, j.progress, j.note,
       CASE WHEN s.cost IS NOT NULL AND EXISTS (
           SELECT 1 FROM events e WHERE e.job = j.id AND e.seq = j.seq - 1
             AND e.type IN ('failed', 'lost', 'released', 'unparked', 'again')) THEN s.cost END AS spared
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job'
CROSS JOIN steps s ON s.job = j.id AND s.generation >= o.value ->> 'fresh_from';
