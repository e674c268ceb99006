-- Put back what a gate held, as many as have room, into the line of their queue. No move.
-- Twin: rows are locked one by one there; SQLite has one writer, and every row would see those put
-- back before it, so their places are told first (without a key: it would be looked into for
-- every job there is).
-- :step 0: in front, as a retry is; 1: one behind the other, as in a submission, from :offset on.
-- The epoch stays: nobody holds a waiting job.
CREATE TEMP TABLE IF NOT EXISTS held (job integer, turn integer);

DELETE FROM temp.held;

INSERT INTO temp.held
SELECT h.id, coalesce((
           SELECT min(w.turn) FROM jobs w
           WHERE w.queue = h.queue AND w.priority = h.priority AND w.state = 'waiting'
             AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0)
       + :step * (:offset + row_number() OVER (ORDER BY h.priority, h.turn, h.id))
FROM (SELECT id, queue, priority, turn FROM jobs
      WHERE state = 'waiting' AND aside = :gate
      ORDER BY priority, turn, id LIMIT :n) h;

UPDATE jobs SET aside = NULL, turn = h.turn
FROM temp.held h
WHERE jobs.id = h.job AND jobs.state = 'waiting'
RETURNING queue;
