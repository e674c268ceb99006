-- What the last look for the matches of a run came to.
UPDATE match_runs SET not_yet = :not_yet, error = :error, snapshot = :snapshot WHERE id = :run;
