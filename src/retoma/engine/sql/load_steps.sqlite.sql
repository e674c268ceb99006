-- What these jobs may read back: the steps of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT s.job, s.name, s.version, s.key, s.state, s.value,
       ((SELECT clock()) - coalesce(s.saved_at, s.begun_at)) / 1000000.0 AS age,
       ((SELECT clock()) - j.progress_at) / 1000000.0 AS quiet,
       j.cancel_at IS NOT NULL AS canceling, j.progress, j.note
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job'
CROSS JOIN steps s ON s.job = j.id AND s.generation >= o.value ->> 'fresh_from';
