-- The things of a pool: how many, how many are held, are off, rest, or were used as often as they may.
SELECT count(*),
       coalesce(sum(CASE WHEN now_is = 'held' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN now_is = 'off' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN now_is = 'resting' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN now_is = 'used up' THEN 1 ELSE 0 END), 0)
FROM (
    SELECT CASE
        WHEN i.scope = 'release'
             OR i.scope = 'attempt' AND EXISTS (
                 SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
             OR i.scope = 'job' AND EXISTS (
                 SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                   AND j.state IN ('waiting', 'running', 'parked')) THEN 'held'
        WHEN i.state = 'off' THEN 'off'
        WHEN i.uses >= p.use_cap THEN 'used up'
        WHEN i.ready_at > (SELECT clock()) THEN 'resting'
        ELSE 'free' END AS now_is
    FROM pools p JOIN pool_items i ON i.pool = p.name WHERE p.name = :pool
) seen;
