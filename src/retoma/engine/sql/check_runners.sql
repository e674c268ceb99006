-- Jobs that are running on a runner that is not there, for the checker.
SELECT j.id, j.runner FROM jobs j
WHERE j.runner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runners r WHERE r.boot = j.runner)
ORDER BY j.id LIMIT :most;
