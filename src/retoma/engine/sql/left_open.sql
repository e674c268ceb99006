-- One of a batch's open jobs whose end nobody has asked for, in one look.
SELECT id FROM jobs
WHERE batch = :batch AND state IN ('waiting', 'running', 'parked') AND cancel_at IS NULL
  AND id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND id <= (SELECT last_job FROM batches WHERE id = :batch)
LIMIT 1;
