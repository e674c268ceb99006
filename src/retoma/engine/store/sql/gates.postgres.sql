-- name: declare_limits
-- Say what limits there are and how many each lets run. What is there already is locked only to change it.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
INSERT INTO limits (key, cap)
SELECT key, cap FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, cap integer)
ORDER BY key
ON CONFLICT (key) DO NOTHING;

UPDATE limits l SET cap = t.cap
FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, cap integer)
WHERE l.key = t.key AND l.cap <> t.cap;

-- name: lock_limits
-- How much room these limits have, held until the end of the transaction. Always in this order.
-- Twin: rows are locked one by one here; SQLite has one writer.
SELECT key, coalesce(by_hand, cap) - used FROM limits
WHERE key = ANY(ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))))
ORDER BY key FOR UPDATE;

-- name: paused_batches
-- Which of these batches are paused; so they stay until what is held of them has been set aside.
-- Twin: rows are locked here, so that whoever lets a batch go on finds all that was set aside.
SELECT id FROM batches
WHERE paused_at IS NOT NULL
  AND id = ANY(ARRAY(SELECT CAST(json_array_elements_text(CAST(:batches AS json)) AS bigint)))
ORDER BY id FOR SHARE;

-- name: put_back
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

-- name: set_aside
-- Set aside what a shut gate holds, in the gate's own line. No move: it waits as before.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- Whoever was never tried stands as far back as in its own submission, who was, in front: so no new
-- job passes an old one, and no large batch a small one. The epoch stays: nobody holds the job.
-- The limits limit nothing: see save_steps.
UPDATE jobs j SET aside = s.gate,
    turn = coalesce((SELECT min(w.turn) FROM jobs w
                     WHERE w.state = 'waiting' AND w.aside = s.gate AND w.priority = j.priority), 0)
         + CASE WHEN j.epoch > 0 THEN 0
                ELSE 1 + j.id - coalesce((SELECT b.first_job FROM batches b WHERE b.id = j.batch), j.id)
           END
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, gate text)
          LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) s
WHERE j.id = s.job AND j.state = 'waiting';

-- name: use_limits
-- Count more running jobs under their limits, or fewer; the room that each has left.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
WITH sent AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, n integer)
), held AS MATERIALIZED (
    SELECT key FROM limits WHERE key = ANY(ARRAY(SELECT key FROM sent)) ORDER BY key FOR UPDATE
)
UPDATE limits l SET used = greatest(l.used + s.n, 0)
FROM held h JOIN sent s ON s.key = h.key
WHERE l.key = h.key
RETURNING l.key, coalesce(l.by_hand, l.cap) - l.used;
