-- Put back what a gate held, as many as have room, into the line of their queue. No move.
-- Twin: rows are locked one by one here; SQLite has one writer.
-- :step 0: in front, as a retry is; 1: one behind the other, as in a submission, from :offset on.
-- The epoch stays: nobody holds a waiting job.
WITH held AS MATERIALIZED (
    SELECT id, queue, priority, turn FROM jobs
    WHERE state = 'waiting' AND aside = :gate
    ORDER BY priority, turn, id LIMIT :n FOR UPDATE SKIP LOCKED
), back AS MATERIALIZED (
    SELECT id, queue, priority, row_number() OVER (ORDER BY priority, turn, id) AS place
    FROM held
), base AS MATERIALIZED (
    SELECT l.queue, l.priority, coalesce((
        SELECT min(w.turn) FROM jobs w
        WHERE w.queue = l.queue AND w.priority = l.priority AND w.state = 'waiting'
          AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0) AS turn
    FROM (SELECT DISTINCT queue, priority FROM back) l
)
UPDATE jobs j SET aside = NULL,
    turn = base.turn + CAST(:step AS bigint) * (CAST(:offset AS bigint) + back.place)
FROM back JOIN base ON base.queue = back.queue AND base.priority = back.priority
WHERE j.id = back.id
RETURNING j.queue;
