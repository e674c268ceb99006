-- name: keep_pass
-- Keep what a pass of retention has deleted, over what the one before did.
INSERT INTO meta (name, value) VALUES ('retention', :told)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: keep_reference
-- Somebody's column refers to jobs or batches: what it names is never retired.
INSERT INTO refers (table_name, column_name, what) VALUES (:table_name, :column_name, :what)
ON CONFLICT (table_name, column_name) DO UPDATE SET what = excluded.what;

-- name: list_references
-- Whose columns refer to jobs or batches.
SELECT table_name, column_name, what FROM refers ORDER BY table_name, column_name;

-- name: next_alerts
-- A stretch of alerts by id, which goes with when they were raised.
SELECT id, since FROM alerts WHERE id > :after ORDER BY id LIMIT :bite;

-- name: old_batches
-- Old batches that have no job any more, and no tally that is not folded yet.
SELECT b.id FROM batches b
WHERE b.created_at < :done_before AND b.id > :after
  AND NOT EXISTS (SELECT 1 FROM jobs j
                  WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id)
  AND NOT EXISTS (SELECT 1 FROM tallies t WHERE t.batch = b.id)
  AND NOT EXISTS (SELECT 1 FROM fillings f WHERE f.batch = b.id)
ORDER BY b.id LIMIT :bite;

-- name: old_events
-- A page of jobs by their first event, also of those that are no more.
SELECT job, at FROM events WHERE seq = 1 AND job > :after ORDER BY job LIMIT :page;

-- name: old_jobs
-- A page of jobs by id: how old each is, and whether it ended long enough ago to go.
SELECT id, created_at,
       CASE WHEN state IN ('done', 'skipped', 'canceled') AND ended_at < :done_before
             OR state = 'dead' AND (ended_at < :dead_before OR discarded_at < :done_before) THEN 1 ELSE 0 END
FROM jobs WHERE id > :after ORDER BY id LIMIT :page;

-- name: retire_alerts
-- Delete those of a stretch of alerts that were closed long ago; open ones stay.
DELETE FROM alerts
WHERE id > :after AND id <= :last AND closed_at < :events_before
RETURNING id;

-- name: retire_costs
-- Delete what days and months came to that nobody can ask for any more; what all came to stays.
DELETE FROM costs
WHERE scope IN ('all', 'application', 'provider') AND period > '' AND period < :costs_before
RETURNING period;

-- name: retire_pace
-- Delete what is told of minutes long past, kind by kind.
DELETE FROM pace
WHERE kind IN (SELECT kind FROM counts WHERE batch = -1) AND minute < :pace_before
RETURNING minute;

-- name: retire_runners
-- Delete the rows of runners that ended long ago and hold nothing.
DELETE FROM runners
WHERE boot IN (
    SELECT r.boot FROM runners r
    WHERE r.state IN ('gone', 'lost') AND r.beat_at < :runners_before
      AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.runner = r.boot)
    LIMIT :bite)
RETURNING boot;

-- name: retire_runner_totals
-- Delete what runners did whose rows are gone: nobody is shown by a boot any more.
DELETE FROM runner_totals WHERE boot NOT IN (SELECT boot FROM runners);

DELETE FROM runner_kinds WHERE boot NOT IN (SELECT boot FROM runners);

-- name: retire_ticks
-- Delete old ticks; the last one of each schedule stays to be shown.
DELETE FROM ticks
WHERE at < :ticks_before
  AND at < (SELECT max(t.at) FROM ticks t WHERE t.schedule = ticks.schedule)
RETURNING at;
