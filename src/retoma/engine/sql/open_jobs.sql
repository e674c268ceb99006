-- Jobs that have not ended, oldest first, a page at a time: by id, which is past history once.
SELECT id, kind, version, payload FROM jobs
WHERE id > :after AND state IN ('waiting', 'running', 'parked')
ORDER BY id LIMIT :limit;
