-- Give due jobs their turn, as many as this claim may take. No move: they wait as before.
-- Twin: SQLite has no LATERAL: a queue's first due rows are a list of ids that `IN` looks up.
-- The epoch stays: nobody holds a waiting job.
-- Who has had a turn and did not fail stands behind whoever waits for the first: a poll that is
-- always due, and older, would else go before new jobs for ever.
WITH due AS MATERIALIZED (
    SELECT j.id, (j.epoch > 0 AND j.code IS NULL) + coalesce((
        SELECT min(w.turn) FROM jobs w
        WHERE w.queue = j.queue AND w.priority = j.priority AND w.state = 'waiting'
          AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0) AS turn
    FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
        SELECT d.id FROM jobs d
        WHERE d.queue = o.value ->> 'queue' AND d.state = 'waiting' AND d.turn IS NULL
          AND d.run_at <= (SELECT clock())
        ORDER BY d.run_at LIMIT :slots)
)
UPDATE jobs SET turn = due.turn FROM due WHERE jobs.id = due.id;
