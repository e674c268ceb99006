-- The match of a task is stored, once.
UPDATE match_tasks SET partida = :partida, already = :already, not_yet = NULL
WHERE id = :task AND partida IS NULL
RETURNING run;
