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
