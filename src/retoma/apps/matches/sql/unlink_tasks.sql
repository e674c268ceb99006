-- The tasks of a match that a person has deleted: they lack it, and say why.
UPDATE match_tasks SET partida = NULL, already = 0, snapshot = NULL, error = :error
WHERE partida = :partida
RETURNING run;
