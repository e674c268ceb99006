-- The day of a match, as its own page says it now.
UPDATE match_tasks SET kickoff = :kickoff WHERE id = :task AND partida IS NULL;
