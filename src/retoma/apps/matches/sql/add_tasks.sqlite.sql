-- A task for each match that the run does not have yet, and that nobody has dropped.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
-- Those that it has keep their job, by the day and the address that this page gives.
INSERT INTO match_tasks (run, match_key, home, away, url, kickoff, created_at)
SELECT r.id, t.value ->> 'match_key', t.value ->> 'home', t.value ->> 'away', t.value ->> 'url',
       t.value ->> 'micros', (SELECT clock())
FROM json_each(:rows) t
JOIN match_runs r ON r.id = :run
WHERE NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.value ->> 'match_key')
ON CONFLICT (run, match_key) DO UPDATE SET kickoff = excluded.kickoff, url = excluded.url
    WHERE match_tasks.partida IS NULL
RETURNING id, match_key, job;
