-- Which job looks for the matches of a run, and how often somebody did before.
UPDATE match_runs SET discovery = :job, looks = :looks
WHERE id = :run AND (discovery IS NULL OR looks = :looks - 1);
