-- A batch may go on. Zero rows: it is not paused, or not there.
UPDATE batches SET paused_at = NULL WHERE id = :batch AND paused_at IS NOT NULL
RETURNING name;
