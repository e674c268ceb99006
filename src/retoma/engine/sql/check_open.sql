-- Jobs that have not ended, for the checker.
SELECT id, state FROM jobs WHERE state IN ('waiting', 'running', 'parked') ORDER BY id LIMIT :most;
