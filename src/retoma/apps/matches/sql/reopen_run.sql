-- A run that was complete lacks a match again.
UPDATE match_runs SET completed_at = NULL WHERE id = :run;
