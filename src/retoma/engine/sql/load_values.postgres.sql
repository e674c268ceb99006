-- The values of these steps of a job, those of generations that it still sees.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- The limits limit nothing: see save_steps.
SELECT s.name, s.version, s.key, s.value
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
          AS t(name text, version integer, key text) LIMIT (SELECT 1000000)) few
      LIMIT (SELECT 1000000)) t
JOIN steps s ON s.job = :job AND s.name = t.name AND s.version = t.version AND s.key = t.key
WHERE s.state = 'saved' AND s.generation >= :fresh_from;
