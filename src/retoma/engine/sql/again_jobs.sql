-- The next generation of ended jobs: a fresh budget, committed steps kept unless they start afresh.
-- Each stands in the queue as if submitted now: its turn is the smallest waiting + its place, so that
-- a hundred thousand tried again do not stand before everybody else.
-- Compare and set on the state somebody saw; the epoch stays, the next claim adds one.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'waiting', generation = jobs.generation + 1, seq = jobs.seq + 1,
    failures = 0, lost = 0, released = 0, reason = NULL, code = NULL, cancel_at = NULL,
    deadline = NULL, result = NULL, ended_at = NULL, run_at = (SELECT clock()), aside = NULL,
    progress = NULL, note = NULL, discarded_at = NULL,
    turn = coalesce((
    SELECT min(w.turn) FROM jobs w
    WHERE w.queue = jobs.queue AND w.priority = jobs.priority AND w.state = 'waiting'
      AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0)
        + CAST(CAST(o.value AS text) AS bigint),
    fresh_from = CASE WHEN :fresh = 1 THEN jobs.generation + 1 ELSE jobs.fresh_from END
FROM json_each(:jobs) o
WHERE jobs.id = CAST(o.key AS bigint) AND (jobs.state = :was) IS TRUE
RETURNING id;
