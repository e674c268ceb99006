-- Hold a thing of a pool that nobody holds, or whose hold is over; not the last one if there is another.
-- Twin: rows somebody else is taking are passed over here.
-- The runner's right to the job and its epoch was checked in this transaction.
UPDATE pool_items SET job = :job, epoch = :epoch, generation = :generation, scope = :scope,
    uses = uses + 1, used_at = (SELECT clock()), last_job = :job
WHERE id = (
    SELECT i.id FROM pool_items i JOIN pools p ON p.name = i.pool
    WHERE i.pool = :pool AND i.state = 'on'
      AND (p.use_cap IS NULL OR i.uses < p.use_cap)
      AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
      AND (i.job IS NULL
             OR i.scope = 'attempt' AND NOT EXISTS (
                 SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
             OR i.scope = 'job' AND NOT EXISTS (
                 SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                   AND j.state IN ('waiting', 'running', 'parked')))
    ORDER BY i.job IS NOT NULL, CASE WHEN i.id = (
            SELECT x.id FROM pool_items x WHERE x.pool = :pool AND x.last_job = :job
            ORDER BY x.used_at DESC LIMIT 1) THEN 1 ELSE 0 END,
        CASE WHEN p.pick = 'random' THEN (i.id * :dice) % 1000003 END, i.used_at NULLS FIRST, i.id
    LIMIT 1 FOR UPDATE OF i SKIP LOCKED)
RETURNING id, name, value;
