-- name: lock_knobs
-- Nobody else changes a knob until the end of the transaction: some of them only go together.
-- Twin: SQLite has one writer.
SELECT 1 FROM (SELECT pg_advisory_xact_lock(5918112849)) AS locked;
