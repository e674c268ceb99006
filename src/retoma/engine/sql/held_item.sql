-- What this job holds of a pool by a scope that outlives an attempt.
SELECT i.id, i.name, i.value FROM pool_items i JOIN jobs j ON j.id = i.job
WHERE i.job = :job AND i.pool = :pool AND i.scope = :scope
  AND (i.scope = 'release' OR i.generation = j.generation)
ORDER BY i.id LIMIT 1;
