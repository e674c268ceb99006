-- What one job has kept last, each value cut to what a person reads.
SELECT name, version, key, state, generation, epoch, saved_at,
       substr(CAST(value AS text), 1, :most) AS value, cost
FROM steps WHERE job = :job
ORDER BY saved_at IS NULL DESC, saved_at DESC, name, key
LIMIT :limit;
