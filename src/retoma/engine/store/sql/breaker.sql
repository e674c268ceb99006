-- name: close_breaker
-- What a breaker guards works again.
UPDATE breakers SET state = 'closed', failures = 0, reason = NULL, since = NULL, probe_at = NULL,
    job = NULL, epoch = NULL
WHERE name = :name AND (failures > 0 OR state <> 'closed')
RETURNING name;

-- name: count_against
-- One more outage in a row of what a breaker guards.
-- At its threshold, or when a probe fails, it opens and rests.
UPDATE breakers SET failures = failures + 1, reason = :reason,
    since = CASE WHEN state = 'closed' AND failures + 1 >= threshold THEN (SELECT clock())
                 ELSE since END,
    probe_at = CASE WHEN state = 'probing' OR failures + 1 >= threshold THEN clock_in(rest)
                    ELSE probe_at END,
    state = CASE WHEN state = 'probing' OR failures + 1 >= threshold THEN 'open' ELSE state END,
    job = NULL, epoch = NULL
WHERE name = :name AND (state = 'closed' OR state = 'probing' AND job = :job AND epoch = :epoch)
RETURNING state;

-- name: list_breakers
-- Every breaker, and whether its next probe is due.
SELECT name, state, failures, threshold, rest, reason, since, probe_at,
       CASE WHEN probe_at <= (SELECT clock()) THEN 1 ELSE 0 END
FROM breakers ORDER BY name;

-- name: open_breaker
-- Open a breaker by hand; a probe closes it again after its rest.
UPDATE breakers SET state = 'open', reason = :reason, since = (SELECT clock()),
    probe_at = clock_in(rest), job = NULL, epoch = NULL
WHERE name = :name
RETURNING name;

-- name: probe_breaker
-- Let one job through an open breaker that has rested, or whose last probe is gone.
-- Compare and set: the canary is the job and epoch that were checked in this transaction.
UPDATE breakers SET state = 'probing', job = :job, epoch = :epoch
WHERE name = :name AND (
    state = 'open' AND probe_at <= (SELECT clock())
    OR state = 'probing' AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = breakers.job AND j.epoch = breakers.epoch
          AND j.state = 'running'))
RETURNING name;

-- name: put_breaker
-- Declare a breaker, or change its rules; whether it is open stays.
INSERT INTO breakers (name, threshold, rest) VALUES (:name, :threshold, :rest)
ON CONFLICT (name) DO UPDATE SET threshold = excluded.threshold, rest = excluded.rest;
