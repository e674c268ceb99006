-- name: promote_job
-- Give this very job its turn, if it is due. No move: it waits as before.
-- The epoch stays: nobody holds a waiting job.
UPDATE jobs SET turn = CASE WHEN epoch > 0 AND code IS NULL THEN 1 ELSE 0 END + coalesce((
        SELECT min(w.turn) FROM jobs w
        WHERE w.queue = jobs.queue AND w.priority = jobs.priority AND w.state = 'waiting'
          AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0)
WHERE id = :job AND queue = :queue AND state = 'waiting' AND turn IS NULL
  AND run_at <= (SELECT clock());
