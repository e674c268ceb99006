-- The values of these steps of a job, those of generations that it still sees.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT s.name, s.version, s.key, s.value
FROM json_each(:rows) o
CROSS JOIN steps s ON s.job = :job AND s.name = o.value ->> 'name'
    AND s.version = o.value ->> 'version' AND s.key = o.value ->> 'key'
WHERE s.state = 'saved' AND s.generation >= :fresh_from;
