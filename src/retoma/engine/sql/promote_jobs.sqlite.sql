-- Give due jobs their turn, as many as this claim may take. No move: they wait as before.
-- Twin: one queue at a time, because SQLite has no LATERAL.
-- The epoch stays: nobody holds a waiting job.
UPDATE jobs SET turn = coalesce((
    SELECT min(w.turn) FROM jobs w
    WHERE w.queue = jobs.queue AND w.priority = jobs.priority AND w.state = 'waiting'
      AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0)
WHERE id IN (
    SELECT id FROM jobs
    WHERE queue = :queue AND state = 'waiting' AND turn IS NULL AND run_at <= (SELECT clock())
    ORDER BY run_at LIMIT :slots);
