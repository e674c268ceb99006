-- Cancel a job nobody holds. Compare and set on the state somebody saw; its epoch stays.
UPDATE jobs SET state = 'canceled', seq = seq + 1, cancel_at = (SELECT clock()),
    ended_at = (SELECT clock()), turn = NULL, aside = NULL, reason = NULL, code = NULL
WHERE id = :job AND state = :was
RETURNING id, seq, batch, kind;
