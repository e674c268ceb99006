-- Let one job through an open breaker that has rested, or whose last probe is gone.
-- Compare and set: the canary is the job and epoch that were checked in this transaction.
UPDATE breakers SET state = 'probing', job = :job, epoch = :epoch
WHERE name = :name AND (
    state = 'open' AND probe_at <= (SELECT clock())
    OR state = 'probing' AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = breakers.job AND j.epoch = breakers.epoch
          AND j.state = 'running'))
RETURNING name;
