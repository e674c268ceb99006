-- name: open_jobs
-- Jobs that have not ended, oldest first, a page at a time: by id, which is past history once.
SELECT id, kind, version, payload FROM jobs
WHERE id > :after AND state IN ('waiting', 'running', 'parked')
ORDER BY id LIMIT :limit;

-- name: open_steps
-- What jobs of a page that have not ended would read back.
SELECT s.job, s.name, s.version, s.value
FROM jobs j CROSS JOIN steps s
WHERE j.id > :after AND j.id <= :until AND j.state IN ('waiting', 'running', 'parked')
  AND s.job = j.id AND s.generation >= j.fresh_from AND s.state = 'saved'
ORDER BY s.job;
