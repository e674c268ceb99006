-- Hold the row of a job for this transaction, if this runner and epoch still have it; whether it is wanted.
UPDATE jobs SET progress_at = (SELECT clock())
WHERE id = :job AND epoch = :epoch AND state = 'running' AND runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING cancel_at IS NULL;
