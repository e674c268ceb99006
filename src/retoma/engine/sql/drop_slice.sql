-- Drop one slice of a submission.
DELETE FROM filling_jobs
WHERE filling = :filling AND slice = (SELECT min(slice) FROM filling_jobs WHERE filling = :filling);
