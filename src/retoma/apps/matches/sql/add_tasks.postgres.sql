-- A task for each match that the run does not have yet; those that it has stay as they are.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO match_tasks (run, match_key, home, away, url, kickoff, created_at)
SELECT CAST(:run AS bigint), t.match_key, t.home, t.away, t.url, t.kickoff, (SELECT clock())
FROM json_to_recordset(CAST(:rows AS json))
    AS t(match_key text, home text, away text, url text, kickoff timestamptz, micros bigint)
ON CONFLICT (run, match_key) DO NOTHING
RETURNING id, match_key;
