-- name: hold_claim
-- Whether this very claim of a job still runs; nobody takes it back before this transaction ends.
-- Twin: the row is locked here; SQLite has one writer.
SELECT 1 FROM jobs j JOIN runners r ON r.boot = j.runner AND r.state IN ('alive', 'leaving')
WHERE j.id = :job AND j.epoch = :epoch AND j.state = 'running'
FOR UPDATE OF j;
