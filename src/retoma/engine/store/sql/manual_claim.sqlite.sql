-- name: lock_job
-- Hold the row of a job until this transaction ends, after whoever holds it now.
-- Twin: the row is locked there; SQLite has one writer.
SELECT id FROM jobs WHERE id = :job;
