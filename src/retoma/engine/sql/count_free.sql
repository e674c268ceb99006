-- How many things of a pool could be held now; none where nobody waits for one.
SELECT count(*) FROM pool_items i JOIN pools p ON p.name = i.pool
WHERE i.pool = :pool AND EXISTS (
          SELECT 1 FROM jobs w WHERE w.state = 'waiting' AND w.aside = :gate)
  AND i.state = 'on' AND (p.use_cap IS NULL OR i.uses < p.use_cap)
  AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
  AND (i.job IS NULL
         OR i.scope = 'attempt' AND NOT EXISTS (
             SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
         OR i.scope = 'job' AND NOT EXISTS (
             SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
               AND j.state IN ('waiting', 'running', 'parked')));
