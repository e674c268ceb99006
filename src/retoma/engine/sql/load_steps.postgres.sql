-- The steps these jobs may read back: those of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
SELECT s.job, s.name, s.version, s.key, s.state, s.value
FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, fresh_from integer)
JOIN steps s ON s.job = t.job AND s.generation >= t.fresh_from;
