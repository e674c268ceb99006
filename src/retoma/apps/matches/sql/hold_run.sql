-- Whoever begins, ends or opens something of the current run of a round waits here for the others who do.
UPDATE match_runs SET looks = looks WHERE id = :run AND ended_at IS NULL RETURNING id;
