-- name: add_tasks
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

-- name: complete_runs
-- Every match of these runs is stored, each as one of this league, season and round (R3).
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
UPDATE match_runs r SET completed_at = (SELECT clock()), completions = completions + 1
FROM (SELECT CAST(json_array_elements_text(CAST(:runs AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
WHERE r.id = n.id AND r.completed_at IS NULL
  AND r.expected = (
      SELECT count(*) FROM match_tasks t JOIN partidas p ON p.id = t.partida
      WHERE t.run = r.id AND p.league = r.league AND p.season = r.season AND p.round = r.round
        AND p.home = t.home AND p.away = t.away)
RETURNING r.id, r.league, r.season, r.round, r.expected, r.completions;

-- name: lock_runs
-- Whoever changes what runs have waits here for the others who do.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT r.id
FROM (SELECT CAST(json_array_elements_text(CAST(:runs AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
JOIN match_runs r ON r.id = n.id
ORDER BY r.id FOR NO KEY UPDATE OF r;
