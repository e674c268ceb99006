-- name: pick_jobs
-- These jobs, by id, to be moved by a person, with the state each is in.
-- Twin: rows are locked here, in the order of their ids; SQLite has one writer.
-- Who has moved since :since is left alone, so that one order meets no job twice.
SELECT j.id, j.code, j.queue, j.kind, j.batch, j.state FROM jobs j
WHERE j.id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o)
  AND (SELECT max(e.at) FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
ORDER BY j.id FOR UPDATE OF j;
