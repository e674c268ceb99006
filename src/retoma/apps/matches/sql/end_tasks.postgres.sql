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
