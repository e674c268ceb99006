-- What the last try of a task came to: nothing yet, or what went wrong and with which page.
UPDATE match_tasks SET not_yet = :not_yet, error = :error, snapshot = :snapshot
WHERE id = :task AND partida IS NULL;
