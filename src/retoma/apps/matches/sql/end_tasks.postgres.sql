-- The matches of tasks are stored, each once: one that has its match already keeps it. Where each is.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
UPDATE match_tasks t SET partida = coalesce(t.partida, n.partida), not_yet = NULL,
    already = CASE WHEN t.partida IS NULL THEN n.already ELSE t.already END
FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS n(task bigint, partida bigint, already integer)
      LIMIT (SELECT 1000)) n
WHERE t.id = n.task
RETURNING t.id, t.partida, t.already;
