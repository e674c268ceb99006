-- Give due jobs their turn, as many as this claim may take. No move: they wait as before.
-- Twin: rows are locked one by one here; SQLite has one writer.
-- The epoch stays: nobody holds a waiting job.
-- Who has had a turn and did not fail stands behind whoever waits for the first: a poll that is
-- always due, and older, would else go before new jobs for ever.
-- The update asks by id alone: with `turn IS NULL` it would read all that is not due, row by row.
WITH due AS MATERIALIZED (
    SELECT d.id, d.queue, d.priority, d.epoch > 0 AND d.code IS NULL AS behind
    FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text)
    CROSS JOIN LATERAL (
        SELECT id, queue, priority, epoch, code FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL
          AND run_at <= (SELECT clock())
        ORDER BY run_at LIMIT :slots FOR UPDATE SKIP LOCKED
    ) d
), base AS MATERIALIZED (
    SELECT l.queue, l.priority, coalesce((
        SELECT min(w.turn) FROM jobs w
        WHERE w.queue = l.queue AND w.priority = l.priority AND w.state = 'waiting'
          AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0) AS turn
    FROM (SELECT DISTINCT queue, priority FROM due) l
)
UPDATE jobs j SET turn = base.turn + CASE WHEN due.behind THEN 1 ELSE 0 END
FROM due JOIN base ON base.queue = due.queue AND base.priority = due.priority
WHERE j.id = due.id;
