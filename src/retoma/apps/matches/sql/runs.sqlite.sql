-- name: add_tasks
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

-- name: complete_runs
-- Every match of these runs is stored, each as one of this league, season and round (R3).
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
UPDATE match_runs SET completed_at = (SELECT clock()), completions = completions + 1
WHERE id IN (SELECT value FROM json_each(:runs)) AND completed_at IS NULL
  AND match_runs.expected = (
      SELECT count(*) FROM match_tasks t JOIN partidas p ON p.id = t.partida
      WHERE t.run = match_runs.id AND p.league = match_runs.league AND p.season = match_runs.season AND p.round = match_runs.round
        AND p.home = t.home AND p.away = t.away)
RETURNING id, league, season, round, expected, completions;

-- name: lock_runs
-- Whoever changes what runs have waits here for the others who do.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT id FROM match_runs WHERE id IN (SELECT value FROM json_each(:runs));
