-- name: ended_already
-- How a claim ended, for a runner that never got the answer to its own settling.
SELECT j.state FROM events e JOIN jobs j ON j.id = e.job
WHERE e.job = :job AND e.epoch = :epoch AND e.type IN ('done', 'skipped', 'failed', 'buried',
    'released', 'snoozed', 'parked', 'canceled');

-- name: hold_job
-- Hold the row of a job for this transaction, if this runner and epoch still have it; whether it is wanted.
UPDATE jobs SET progress_at = (SELECT clock())
WHERE id = :job AND epoch = :epoch AND state = 'running' AND runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING cancel_at IS NULL;

-- name: saved_already
-- Whether a step got into this state under this very epoch, for a runner that never got the answer.
SELECT 1 FROM steps
WHERE job = :job AND name = :name AND version = :version AND key = :key AND epoch = :epoch
  AND state = :state;
