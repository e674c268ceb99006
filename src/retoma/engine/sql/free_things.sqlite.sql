-- Things of a pool that could be held now: the longest rested first, or by chance, those that fail last.
-- Twin: they are locked there; SQLite has one writer.
SELECT i.id, i.name, i.value, i.last_job, i.used_at
FROM pools p CROSS JOIN pool_items i ON i.pool = p.name
WHERE p.name = :pool AND i.job IS NULL AND i.state = 'on'
  AND (p.use_cap IS NULL OR i.uses < p.use_cap)
  AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
ORDER BY CASE WHEN p.pick = 'random' THEN i.failures END,
         CASE WHEN p.pick = 'random' THEN (i.id * :dice) % 1000003 END, i.used_at NULLS FIRST, i.id
LIMIT :n;
