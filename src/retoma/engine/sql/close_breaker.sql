-- What a breaker guards works again.
UPDATE breakers SET state = 'closed', failures = 0, reason = NULL, since = NULL, probe_at = NULL,
    job = NULL, epoch = NULL
WHERE name = :name AND (failures > 0 OR state <> 'closed')
RETURNING name;
