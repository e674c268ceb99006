-- A parked job waits its turn again. Compare and set on its state; its epoch stays.
UPDATE jobs SET state = 'waiting', seq = seq + 1, reason = NULL, code = NULL, turn = NULL,
    run_at = (SELECT clock())
WHERE id = :job AND state = 'parked'
RETURNING id, seq, batch, kind;
