-- name: end_tasks
-- The matches of tasks are stored, each once: one that has its match already keeps it. Where each is.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
-- Nothing but its own match: of the round, season and pair that was found (R3).
UPDATE match_tasks SET partida = coalesce(match_tasks.partida, n.partida), not_yet = NULL,
    already = CASE WHEN match_tasks.partida IS NULL THEN n.already ELSE match_tasks.already END
FROM (SELECT value ->> 'task' AS task, value ->> 'partida' AS partida, value ->> 'already' AS already
      FROM json_each(:rows)) n
WHERE match_tasks.id = n.task
  AND EXISTS (
      SELECT 1 FROM partidas p JOIN match_runs r ON r.id = match_tasks.run
      WHERE p.id = n.partida AND p.league = r.league AND p.season = r.season AND p.round = r.round
        AND p.home = match_tasks.home AND p.away = match_tasks.away)
RETURNING match_tasks.id, match_tasks.partida, match_tasks.already;

-- name: get_tasks
-- What stories are told of their tasks, and where each match is stored, if it is.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
SELECT t.id, t.run, t.match_key, t.url, t.kickoff, t.job, r.league, r.season, r.round, t.partida, p.id AS there
FROM json_each(:tasks) n
CROSS JOIN match_tasks t ON t.id = n.value
CROSS JOIN match_runs r ON r.id = t.run
LEFT JOIN partidas p ON p.league = r.league AND p.season = r.season AND p.round = r.round
    AND p.home = t.home AND p.away = t.away;
