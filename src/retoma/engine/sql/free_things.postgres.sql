-- Things of a pool that could be held now: the longest rested first, or by chance, those that fail last.
-- Twin: they are locked here, and passed over where somebody else is about to take them.
SELECT i.id, i.name, i.value, i.last_job, i.used_at
FROM pool_items i JOIN pools p ON p.name = i.pool
WHERE i.pool = :pool AND i.job IS NULL AND i.state = 'on'
  AND (p.use_cap IS NULL OR i.uses < p.use_cap)
  AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
ORDER BY CASE WHEN p.pick = 'random' THEN i.failures END,
         CASE WHEN p.pick = 'random' THEN (i.id * :dice) % 1000003 END, i.used_at NULLS FIRST, i.id
LIMIT :n FOR UPDATE OF i SKIP LOCKED;
