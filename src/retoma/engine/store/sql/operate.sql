-- name: again
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

-- name: cancel_job
-- Cancel a job nobody holds. Compare and set on the state somebody saw; its epoch stays.
-- One that waits for remote work is not ended so: that work must be stopped first (stop_remote.sql).
UPDATE jobs SET state = 'canceled', seq = seq + 1, cancel_at = (SELECT clock()),
    ended_at = (SELECT clock()), turn = NULL, aside = NULL, reason = NULL, code = NULL
WHERE id = :job AND state = :was AND (state = 'parked' OR NOT EXISTS (
    SELECT 1 FROM steps s
    WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
      AND s.state IN ('begun', 'saved')))
RETURNING id, seq, batch, kind;

-- name: discard_job
-- Put a dead letter away, once. Compare and set on its state; its epoch stays, and so does all else.
UPDATE jobs SET discarded_at = (SELECT clock()), seq = seq + 1
WHERE id = :job AND state = 'dead' AND discarded_at IS NULL
RETURNING seq;

-- name: next_event
-- Number the next event of a parked job, whose epoch nobody holds.
UPDATE jobs SET seq = seq + 1 WHERE id = :job AND state = 'parked' RETURNING seq;

-- name: request_cancel
-- Ask for the end of a running job, once. Its epoch stays: the holder settles it, or its taking back.
UPDATE jobs SET cancel_at = (SELECT clock()), seq = seq + 1
WHERE id = :job AND state = 'running' AND cancel_at IS NULL
RETURNING seq, epoch, runner;

-- name: say_of_step
-- What a person knows of a step that we lost sight of. Compare and set on the step's state.
UPDATE steps SET state = :state, value = :value, saved_at = (SELECT clock())
WHERE job = :job AND name = :name AND version = :version AND key = :key AND state = :was
RETURNING epoch;

-- name: unknown_steps
-- What a job has begun, or has at work elsewhere, and nobody has seen end; the latest first.
SELECT name, version, key, state, value FROM steps
WHERE job = :job AND (state = 'begun'
    OR state = 'saved' AND name >= 'remote:' AND name < 'remote;')
ORDER BY begun_at DESC;

-- name: unpark
-- A parked job waits its turn again. Compare and set on its state; its epoch stays.
UPDATE jobs SET state = 'waiting', seq = seq + 1, reason = NULL, code = NULL, turn = NULL,
    run_at = (SELECT clock())
WHERE id = :job AND state = 'parked'
RETURNING id, seq, batch, kind;
