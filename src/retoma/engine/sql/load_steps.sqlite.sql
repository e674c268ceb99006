-- The steps these jobs may read back: those of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT s.job, s.name, s.version, s.key, s.state, s.value
FROM json_each(:rows) o
CROSS JOIN steps s ON s.job = o.value ->> 'job' AND s.generation >= o.value ->> 'fresh_from';
