-- A worker in error is idle at once: it rests no longer, and its failures are forgotten.
UPDATE ads_workers SET status = 'idle', failures = 0, rests_until = NULL, updated_at = (SELECT clock())
WHERE id = :worker AND deleted_at IS NULL AND status = 'error'
RETURNING id;
