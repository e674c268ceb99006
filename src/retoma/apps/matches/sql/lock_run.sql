-- Whoever changes what a run has waits here for the others who do.
UPDATE match_runs SET looks = looks WHERE id = :run RETURNING expected;
