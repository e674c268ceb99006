-- Things of one pool by name, from one on, and who holds them: a hold that is over is none.
SELECT name, value, vendor, state, reason, uses, failures, score, ready_at, used_at,
       CASE WHEN held = 1 THEN job END, CASE WHEN held = 1 THEN scope END
FROM (
    SELECT i.*, CASE WHEN (i.scope = 'release'
           OR i.scope = 'attempt' AND EXISTS (
               SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
           OR i.scope = 'job' AND EXISTS (
               SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                 AND j.state IN ('waiting', 'running', 'parked'))) THEN 1 ELSE 0 END AS held
    FROM pool_items i WHERE i.pool = :pool AND i.name > :after ORDER BY i.name LIMIT :most
) seen
ORDER BY name;
