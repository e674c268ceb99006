-- name: claims_under_way
-- Transactions in which a claim may be under way that began before this statement.
-- Twin: claims run beside a pause here; SQLite has one writer, so none is ever under way beside it.
-- A statement locks its tables before it takes its snapshot: what is not listed here will see all that
-- is committed now. Readers, a dump among them, hold no such lock.
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = CAST('jobs' AS regclass) AND mode IN ('RowShareLock', 'RowExclusiveLock')
  AND pid <> pg_backend_pid();
