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
