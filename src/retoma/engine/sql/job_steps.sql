-- What one job has kept.
SELECT name, version, key, state, generation, epoch, saved_at, value, cost
FROM steps WHERE job = :job ORDER BY saved_at, name, key;
