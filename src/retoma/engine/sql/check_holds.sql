-- Pool items that are held by a job that is not there, or under an epoch it never had, for the checker.
SELECT i.pool, i.name, i.job, i.epoch, j.epoch
FROM pool_items i LEFT JOIN jobs j ON j.id = i.job
WHERE i.job IS NOT NULL AND (j.id IS NULL OR i.epoch > j.epoch OR i.generation > j.generation)
ORDER BY i.pool, i.name LIMIT :most;
