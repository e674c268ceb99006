-- A task for each match that the run does not have yet; those that it has stay as they are.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO match_tasks (run, match_key, home, away, url, kickoff, created_at)
SELECT CAST(:run AS bigint), value ->> 'match_key', value ->> 'home', value ->> 'away', value ->> 'url',
       value ->> 'micros', (SELECT clock())
FROM json_each(:rows) WHERE true
ON CONFLICT (run, match_key) DO NOTHING
RETURNING id, match_key;
