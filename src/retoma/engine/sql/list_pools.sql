-- Every pool, with how many things it has, how many are on and how many are held.
SELECT p.name, p.pick, p.use_cap, p.cool_down, p.off_after, p.healthy, count(i.id),
       coalesce(sum(CASE WHEN i.state = 'on' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN (i.scope = 'release'
              OR i.scope = 'attempt' AND EXISTS (
                  SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
              OR i.scope = 'job' AND EXISTS (
                  SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                    AND j.state IN ('waiting', 'running', 'parked'))) THEN 1 ELSE 0 END), 0)
FROM pools p LEFT JOIN pool_items i ON i.pool = p.name
GROUP BY p.name, p.pick, p.use_cap, p.cool_down, p.off_after, p.healthy
ORDER BY p.name;
