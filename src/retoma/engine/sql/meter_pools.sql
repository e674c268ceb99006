-- How many things of each pool are off, held, free, or resting: on, and not to be held just now.
SELECT pool, stands, count(*) FROM (
    SELECT i.pool,
           CASE WHEN i.state = 'off' THEN 'off'
                WHEN i.scope = 'release'
                  OR i.scope = 'attempt' AND EXISTS (
                      SELECT 1 FROM jobs j
                      WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
                  OR i.scope = 'job' AND EXISTS (
                      SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                        AND j.state IN ('waiting', 'running', 'parked')) THEN 'held'
                WHEN i.ready_at > (SELECT clock()) OR i.uses >= p.use_cap THEN 'resting'
                ELSE 'free' END AS stands
    FROM pool_items i JOIN pools p ON p.name = i.pool) things
GROUP BY pool, stands;
