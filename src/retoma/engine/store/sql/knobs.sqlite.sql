-- name: lock_knobs
-- Nobody else changes a knob until the end of the transaction: some of them only go together.
-- Twin: here there is one writer; PostgreSQL takes a lock.
SELECT 1;
