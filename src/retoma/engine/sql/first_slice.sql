-- The first slice of a submission that has not been moved yet.
SELECT slice, place, key, hash, limits, payload FROM filling_jobs
WHERE filling = :filling AND slice = (SELECT min(slice) FROM filling_jobs WHERE filling = :filling)
ORDER BY place;
