-- What the jobs of a submission in slices have in common, and how many have come in.
SELECT submission, jobs, batch FROM fillings WHERE id = :filling;
