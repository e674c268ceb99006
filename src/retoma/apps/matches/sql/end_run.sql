-- Nothing of a run is open any more, so the next may begin.
UPDATE match_runs SET ended_at = (SELECT clock()) WHERE id = :run AND ended_at IS NULL;
