-- name: end_tasks
-- The matches of tasks are stored, each once: one that has its match already keeps it. Where each is.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
-- Nothing but its own match: of the round, season and pair that was found (R3).
UPDATE match_tasks t SET partida = coalesce(t.partida, n.partida), not_yet = NULL,
    already = CASE WHEN t.partida IS NULL THEN n.already ELSE t.already END
FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS n(task bigint, partida bigint, already integer)
      LIMIT (SELECT 1000)) n
WHERE t.id = n.task
  AND EXISTS (
      SELECT 1 FROM partidas p JOIN match_runs r ON r.id = t.run
      WHERE p.id = n.partida AND p.league = r.league AND p.season = r.season AND p.round = r.round
        AND p.home = t.home AND p.away = t.away)
RETURNING t.id, t.partida, t.already;

-- name: get_tasks
-- What stories are told of their tasks, and where each match is stored, if it is.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT t.id, t.run, t.match_key, t.url, t.kickoff, t.job, r.league, r.season, r.round, t.partida, p.id AS there
FROM (SELECT CAST(json_array_elements_text(CAST(:tasks AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
JOIN match_tasks t ON t.id = n.id
JOIN match_runs r ON r.id = t.run
LEFT JOIN partidas p ON p.league = r.league AND p.season = r.season AND p.round = r.round
    AND p.home = t.home AND p.away = t.away;
