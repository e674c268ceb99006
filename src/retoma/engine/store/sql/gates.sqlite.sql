-- name: declare_limits
-- Say what limits there are and how many each lets run. What is there already is locked only to change it.
-- Twin: sets of rows arrive by json_to_recordset there. Here what was sent stands in a temp table, or
-- all limits would be read to find them.
CREATE TEMP TABLE IF NOT EXISTS declared (key text PRIMARY KEY, cap integer);

DELETE FROM temp.declared;

INSERT INTO temp.declared SELECT value ->> 'key', value ->> 'cap' FROM json_each(:rows);

INSERT INTO limits (key, cap) SELECT key, cap FROM temp.declared WHERE true
ON CONFLICT (key) DO NOTHING;

UPDATE limits SET cap = (SELECT d.cap FROM temp.declared d WHERE d.key = limits.key)
WHERE key IN (SELECT d.key FROM temp.declared d)
  AND cap <> (SELECT d.cap FROM temp.declared d WHERE d.key = limits.key);

-- name: lock_limits
-- How much room these limits have, held until the end of the transaction. Always in this order.
-- Twin: rows are locked one by one there; SQLite has one writer.
SELECT key, coalesce(by_hand, cap) - used FROM limits
WHERE key IN (SELECT value FROM json_each(:keys))
ORDER BY key;

-- name: paused_batches
-- Which of these batches are paused; so they stay until what is held of them has been set aside.
-- Twin: rows are locked there; SQLite has one writer.
SELECT b.id FROM json_each(:batches) o CROSS JOIN batches b ON b.id = o.value
WHERE b.paused_at IS NOT NULL;

-- name: put_back
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

-- name: set_aside
-- Set aside what a shut gate holds, in the gate's own line. No move: it waits as before.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here; and every row would see
-- those set aside before it, so their places are told first (without a
-- key: it would be looked into for every job there is).
-- Whoever was never tried stands as far back as in its own submission, who was, in front: so no new
-- job passes an old one, and no large batch a small one. The epoch stays: nobody holds the job.
CREATE TEMP TABLE IF NOT EXISTS shut (job integer, gate text, turn integer);

DELETE FROM temp.shut;

INSERT INTO temp.shut
SELECT j.id, o.value ->> 'gate',
       coalesce((SELECT min(w.turn) FROM jobs w
                 WHERE w.state = 'waiting' AND w.aside = o.value ->> 'gate'
                   AND w.priority = j.priority), 0)
     + CASE WHEN j.epoch > 0 THEN 0
            ELSE 1 + j.id - coalesce((SELECT b.first_job FROM batches b WHERE b.id = j.batch), j.id)
       END
FROM json_each(:rows) o CROSS JOIN jobs j ON j.id = o.value ->> 'job';

UPDATE jobs SET aside = s.gate, turn = s.turn
FROM temp.shut s
WHERE jobs.id = s.job AND jobs.state = 'waiting';

-- name: use_limits
-- Count more running jobs under their limits, or fewer; the room that each has left.
-- Twin: rows are locked one by one there, always in the same order. SQLite has one writer; what was
-- sent stands in a temp table, or all limits would be read to find them.
CREATE TEMP TABLE IF NOT EXISTS counted (key text PRIMARY KEY, n integer);

DELETE FROM temp.counted;

INSERT INTO temp.counted SELECT value ->> 'key', value ->> 'n' FROM json_each(:rows);

UPDATE limits SET
    used = max(used + (SELECT c.n FROM temp.counted c WHERE c.key = limits.key), 0)
WHERE key IN (SELECT c.key FROM temp.counted c)
RETURNING key, coalesce(by_hand, cap) - used;
