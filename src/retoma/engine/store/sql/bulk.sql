-- name: again_jobs
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

-- name: cancel_jobs
-- Cancel jobs nobody holds. Compare and set on the state somebody saw; their epoch stays.
-- One that waits for remote work is not ended so: that work must be stopped first (stop_remote.sql).
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'canceled', seq = seq + 1, cancel_at = (SELECT clock()),
    ended_at = (SELECT clock()), turn = NULL, aside = NULL, reason = NULL, code = NULL
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND (state = :was) IS TRUE
  AND (state = 'parked' OR NOT EXISTS (
      SELECT 1 FROM steps s
      WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
        AND s.state IN ('begun', 'saved')))
RETURNING id;

-- name: discard_jobs
-- Put dead letters away, each once. Compare and set on their state; their epoch stays, and so does all else.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET discarded_at = (SELECT clock()), seq = seq + 1
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND (state = 'dead') IS TRUE
  AND discarded_at IS NULL
RETURNING id;

-- name: left_open
-- One of a batch's open jobs whose end nobody has asked for, in one look.
SELECT id FROM jobs
WHERE batch = :batch AND state IN ('waiting', 'running', 'parked') AND cancel_at IS NULL
  AND id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND id <= (SELECT last_job FROM batches WHERE id = :batch)
LIMIT 1;

-- name: left_others
-- One of the jobs that pick_others would pick, were nobody holding its row.
SELECT j.id FROM jobs j
WHERE j.batch = :batch AND j.state = :was
  AND j.id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :batch)
  AND (j.state NOT IN ('waiting', 'running') OR j.cancel_at IS NULL)
  AND (j.code IN (SELECT key FROM json_each(:codes)) OR CAST(:codes AS text) IS NULL)
  AND (CAST(:all_seen AS integer) = 0 OR NOT EXISTS (
      SELECT 1 FROM steps s WHERE s.job = j.id AND (s.state = 'begun'
          OR s.state = 'saved' AND s.name >= 'remote:' AND s.name < 'remote;')))
  AND (SELECT e.at FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
LIMIT 1;

-- name: left_stopped
-- One of the jobs that pick_stopped would pick, were nobody holding its row.
SELECT j.id FROM jobs j
WHERE j.batch = :batch AND j.state = :was
  AND j.state IN ('parked', 'skipped', 'dead', 'canceled') AND j.discarded_at IS NULL
  AND (j.code IN (SELECT key FROM json_each(:codes)) OR CAST(:codes AS text) IS NULL)
  AND (SELECT e.at FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
LIMIT 1;

-- name: request_cancels
-- Ask for the end of running jobs, once. Their epoch stays: the holder settles them, or the taking back.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET cancel_at = (SELECT clock()), seq = seq + 1
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o)
  AND (state = 'running') IS TRUE AND cancel_at IS NULL
RETURNING id, runner;

-- name: skip_jobs
-- Jobs nobody holds end without being done. Compare and set on the state somebody saw; their epoch stays.
-- One with a step that nobody saw end is not, unless :anyway: remote work would run on, and a payment that may
-- have gone through would be forgotten.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'skipped', seq = seq + 1, ended_at = (SELECT clock()), turn = NULL,
    aside = NULL, reason = NULL, code = NULL
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND (state = :was) IS TRUE
  AND (CAST(:anyway AS integer) = 1 OR NOT EXISTS (
      SELECT 1 FROM steps s
      WHERE s.job = jobs.id AND (s.state = 'begun'
          OR s.state = 'saved' AND s.name >= 'remote:' AND s.name < 'remote;')))
RETURNING id;

-- name: stop_remote
-- Ask for the end of a job that waits for remote work, once: a runner takes it up to stop that work.
-- Compare and set on its state; its epoch stays.
UPDATE jobs SET cancel_at = (SELECT clock()), seq = seq + 1, turn = NULL, aside = NULL,
    run_at = (SELECT clock())
WHERE id = :job AND state = 'waiting' AND cancel_at IS NULL AND EXISTS (
    SELECT 1 FROM steps s
    WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
      AND s.state IN ('begun', 'saved'))
RETURNING seq, queue;

-- name: tell_moves
-- One line in the timeline of each job just moved, numbered by its move.
INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT id, seq, CASE WHEN state = 'running' THEN epoch END, :type, (SELECT clock()), :actor,
       :details
FROM jobs WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o);

-- name: unpark_jobs
-- Parked jobs wait their turn again, as if submitted now.
-- Compare and set on their state; their epoch stays.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'waiting', seq = jobs.seq + 1, reason = NULL, code = NULL,
    run_at = (SELECT clock()), turn = coalesce((
    SELECT min(w.turn) FROM jobs w
    WHERE w.queue = jobs.queue AND w.priority = jobs.priority AND w.state = 'waiting'
      AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0)
        + CAST(CAST(o.value AS text) AS bigint)
FROM json_each(:jobs) o
WHERE jobs.id = CAST(o.key AS bigint) AND (jobs.state = 'parked') IS TRUE
RETURNING id;
