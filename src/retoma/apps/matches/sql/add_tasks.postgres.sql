-- A task for each match that the run does not have yet, and that nobody has dropped.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
-- Those that it has keep their job, by the day and the address that this page gives.
INSERT INTO match_tasks (run, match_key, home, away, url, kickoff, created_at)
SELECT r.id, t.match_key, t.home, t.away, t.url, t.kickoff, (SELECT clock())
FROM json_to_recordset(CAST(:rows AS json))
    AS t(match_key text, home text, away text, url text, kickoff timestamptz, micros bigint)
JOIN match_runs r ON r.id = :run
WHERE NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
ON CONFLICT (run, match_key) DO UPDATE SET kickoff = excluded.kickoff, url = excluded.url
    WHERE match_tasks.partida IS NULL
RETURNING id, match_key, job;
