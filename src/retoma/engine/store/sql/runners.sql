-- name: beat_runner
-- Renew the lease of one runner, and through it of every job it holds. Zero rows: this boot is over.
-- Who could not beat for a whole lease was deaf, whether he knows it or not: he is in touch since now.
UPDATE runners SET beat_at = (SELECT clock()), lease_until = clock_in(:lease), trouble = :trouble,
    since = CASE WHEN :reconnected = 1 OR lease_until < (SELECT clock()) THEN (SELECT clock())
                 ELSE since END
WHERE boot = :boot AND state IN ('alive', 'leaving')
RETURNING CASE WHEN drain_at IS NULL THEN 0 ELSE 1 END;

-- name: declare_lost
-- Runners whose lease is over are lost, because a person says so: whoever was deaf beats again, and is fenced.
UPDATE runners SET state = 'lost'
WHERE state IN ('alive', 'leaving') AND lease_until < (SELECT clock())
RETURNING boot, name;

-- name: boot_runner
-- A new life of a runner: nothing it wrote before counts as its own. Once, also if the answer got lost.
INSERT INTO runners (boot, name, host, pid, pid_started, version, state, since, beat_at,
                     lease_until, slots, knows)
VALUES (:boot, :name, :host, :pid, :pid_started, :version, 'alive', (SELECT clock()),
        (SELECT clock()), clock_in(:lease), :slots, :knows)
ON CONFLICT (boot) DO NOTHING;

-- name: database_id
-- The database's own id: job 7 of one database is not job 7 of another.
SELECT value FROM meta WHERE name = 'database';

-- name: get_runner
-- Where one boot stands: zero rows, nobody has heard of it.
SELECT name, state FROM runners WHERE boot = :boot;

-- name: lose_runners
-- Declare runners lost whose lease is over, a few at a time; only one who was not deaf itself may.
-- Deaf is also who has not beaten since: its own lease is over too.
UPDATE runners SET state = 'lost'
WHERE state IN ('alive', 'leaving') AND boot IN (
    SELECT r.boot FROM runners r
    WHERE r.state IN ('alive', 'leaving') AND r.lease_until < (SELECT clock())
      AND r.boot <> :boot
    ORDER BY r.lease_until LIMIT 5)
  AND (SELECT me.since FROM runners me WHERE me.boot = :boot AND me.state = 'alive'
          AND me.lease_until >= (SELECT clock())) <= clock_in(-:lease)
RETURNING boot, name;

-- name: move_runner
-- One runner goes from a living state to another; zero rows: somebody was first.
UPDATE runners SET state = :to WHERE boot = :boot AND state IN ('alive', 'leaving')
RETURNING boot, name;

-- name: neighbours
-- Runners that say they live on this host: their processes can be looked for.
SELECT boot, pid, pid_started FROM runners
WHERE host = :host AND state IN ('alive', 'leaving') AND boot <> :boot;

-- name: number_left_jobs
-- Number the next event of every job a lost runner has left, under the epoch it still has.
UPDATE jobs SET seq = seq + 1
WHERE runner = :boot AND state = 'running'
  AND (SELECT state FROM runners WHERE boot = :boot) = 'lost'
RETURNING id, epoch, seq;

-- name: request_drain
-- Ask a living runner to leave once its jobs have ended, once; it is fenced by its boot, used by nobody else.
UPDATE runners SET drain_at = (SELECT clock())
WHERE boot = :boot AND state = 'alive' AND drain_at IS NULL
RETURNING name;

-- name: drain_wanted
-- Whether somebody has asked this runner to leave; read without a beat.
SELECT 1 FROM runners WHERE boot = :boot AND drain_at IS NOT NULL;
