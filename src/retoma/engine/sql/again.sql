-- The next generation of an ended job: a fresh budget, committed steps kept unless it starts afresh.
-- Its old deadline is over with the generation that had it.
-- Compare and set on the state and generation somebody saw; the epoch stays, the next claim adds one.
UPDATE jobs SET state = 'waiting', generation = generation + 1, seq = seq + 1, failures = 0,
    lost = 0, released = 0, reason = NULL, code = NULL, cancel_at = NULL, deadline = NULL, result = NULL,
    ended_at = NULL, turn = NULL, run_at = (SELECT clock()), aside = NULL, progress = NULL,
    note = NULL, discarded_at = NULL,
    fresh_from = CASE WHEN :fresh = 1 THEN generation + 1 ELSE fresh_from END
WHERE id = :job AND state = :was AND generation = :generation
RETURNING id, seq, batch, kind;
