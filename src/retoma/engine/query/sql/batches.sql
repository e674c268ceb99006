-- name: batch_pace
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

-- name: list_batches
-- Batches, newest first, a page at a time.
SELECT id, name, kind, created_at FROM batches
WHERE CAST(:before AS bigint) IS NULL OR id < :before
ORDER BY id DESC LIMIT :limit;
