-- How a batch stands apart from its counts: paused or not, and how many of it ended of late, since when.
SELECT b.paused_at, b.created_at, (SELECT clock()),
       coalesce((SELECT sum(p.n) FROM batch_pace p
                 WHERE p.batch = b.id AND p.minute > (SELECT clock_in(:window))), 0)
       + coalesce((SELECT sum(t.n) FROM tallies t
                   WHERE t.batch = b.id AND t.minute > (SELECT clock_in(:window))
                     AND t.to_state IN ('done', 'skipped', 'dead', 'canceled')), 0),
       coalesce((SELECT min(p.minute) FROM batch_pace p
                 WHERE p.batch = b.id AND p.minute > (SELECT clock_in(:window))),
                (SELECT min(t.minute) FROM tallies t
                 WHERE t.batch = b.id AND t.minute > (SELECT clock_in(:window))
                   AND t.to_state IN ('done', 'skipped', 'dead', 'canceled')))
FROM batches b WHERE b.id = :batch;
