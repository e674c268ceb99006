-- Open a breaker by hand; a probe closes it again after its rest.
UPDATE breakers SET state = 'open', reason = :reason, since = (SELECT clock()),
    probe_at = clock_in(rest), job = NULL, epoch = NULL
WHERE name = :name
RETURNING name;
