-- name: pick_others
-- Jobs of a batch that wait, run or are done, by id, a bite at a time, to be moved.
-- Twin: SQLite has one writer: nothing need be locked.
-- Who has moved since :since is left alone, so that one call meets no job twice.
-- An open job that somebody wants canceled already is not met again; with :all_seen neither is one with a step
-- that nobody has seen end.
SELECT j.id, j.code, j.queue, j.kind, j.batch FROM jobs j
WHERE j.batch = :batch AND j.state = :was AND j.id > :after
  AND j.id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :batch)
  AND (j.state NOT IN ('waiting', 'running') OR j.cancel_at IS NULL)
  AND (j.code IN (SELECT key FROM json_each(:codes)) OR CAST(:codes AS text) IS NULL)
  AND (CAST(:all_seen AS integer) = 0 OR NOT EXISTS (
      SELECT 1 FROM steps s WHERE s.job = j.id AND (s.state = 'begun'
          OR s.state = 'saved' AND s.name >= 'remote:' AND s.name < 'remote;')))
  AND (SELECT e.at FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
ORDER BY j.id LIMIT :bite;

-- name: pick_stopped
-- Jobs of a batch that stopped (parked or ended otherwise than done), by id, a bite at a time, to be moved.
-- Twin: SQLite has one writer: nothing need be locked.
-- Who has moved since :since is left alone, so that one call meets no job twice.
-- The state is said twice: the list lets the partial index be used.
SELECT j.id, j.code, j.queue, j.kind, j.batch FROM jobs j
WHERE j.batch = :batch AND j.state = :was
  AND j.state IN ('parked', 'skipped', 'dead', 'canceled') AND j.id > :after
  AND j.discarded_at IS NULL
  AND (j.code IN (SELECT key FROM json_each(:codes)) OR CAST(:codes AS text) IS NULL)
  AND (SELECT e.at FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
ORDER BY j.id LIMIT :bite;

-- name: tally_move
-- Jobs moved by a person, for the counters.
-- Twin: minutes are cut differently.
INSERT INTO tallies (batch, kind, from_state, to_state, code, minute, n)
VALUES (:batch, :kind, :was, :to, :code, (SELECT clock()) / 60000000 * 60000000, :n);
