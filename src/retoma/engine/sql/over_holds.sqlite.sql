-- Things of a pool whose hold seems to be over: its attempt has ended, or its job.
-- Twin: they are locked there; SQLite has one writer.
SELECT i.id FROM pool_items i
WHERE i.pool = :pool AND i.job IS NOT NULL AND i.state = 'on'
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
ORDER BY i.used_at LIMIT :n;
