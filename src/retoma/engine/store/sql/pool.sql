-- name: count_free
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

-- name: declare_free
-- A person says that nobody uses a thing any more.
UPDATE pool_items SET job = NULL, epoch = NULL, generation = NULL, scope = NULL
WHERE pool = :pool AND name = :name AND job IS NOT NULL
RETURNING id, job;

-- name: get_pool
-- The rules of one pool.
SELECT name, pick, use_cap, cool_down, off_after, healthy FROM pools WHERE name = :pool;

-- name: list_items
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

-- name: list_pools
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

-- name: put_pool
-- Declare a pool, or change its rules; its things stay. Nothing comes back where nothing changed.
INSERT INTO pools (name, pick, use_cap, cool_down, off_after, healthy)
VALUES (:name, :pick, :use_cap, :cool_down, :off_after, :healthy)
ON CONFLICT (name) DO UPDATE SET pick = excluded.pick, use_cap = excluded.use_cap,
    cool_down = excluded.cool_down, off_after = excluded.off_after, healthy = excluded.healthy
WHERE pools.pick <> excluded.pick OR pools.use_cap IS DISTINCT FROM excluded.use_cap
   OR pools.cool_down <> excluded.cool_down OR pools.off_after IS DISTINCT FROM excluded.off_after
   OR pools.healthy <> excluded.healthy
RETURNING name;

-- name: switch_off_failing
-- Switch a thing off that failed too often.
-- Never below what the pool must keep, and never while nothing else of its vendor works, or more
-- than half of it has failed within ten minutes: somebody else's outage is not its fault.
UPDATE pool_items SET state = 'off',
    reason = 'failed ' || failures || ' times in a row'
WHERE id = :item AND state = 'on'
  AND failures >= (SELECT off_after FROM pools p WHERE p.name = pool_items.pool)
  AND (SELECT count(*) FROM pool_items o WHERE o.pool = pool_items.pool AND o.state = 'on')
      > (SELECT healthy FROM pools p WHERE p.name = pool_items.pool)
  AND EXISTS (
      SELECT 1 FROM pool_items o
      WHERE o.pool = pool_items.pool AND o.vendor = pool_items.vendor AND o.id <> pool_items.id
        AND o.worked_at >= pool_items.failed_from)
  AND (SELECT 2 * count(CASE WHEN o.failed_at >= clock_in(-600) THEN 1 END) <= count(*)
       FROM pool_items o
       WHERE o.pool = pool_items.pool AND o.vendor = pool_items.vendor
         AND (o.state = 'on' OR o.failed_at >= clock_in(-600)))
RETURNING name;
