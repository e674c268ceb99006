-- Whether this very claim of a job still runs; nobody takes it back before this transaction ends.
-- Twin: the row is locked here; SQLite has one writer.
SELECT 1 FROM jobs WHERE id = :job AND epoch = :epoch AND state = 'running' FOR UPDATE;
