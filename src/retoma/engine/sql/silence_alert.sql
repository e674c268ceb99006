-- Tell nobody of an open alert, nor of the next ones of its rule and subject, until a time.
UPDATE alerts SET silenced_until = (SELECT clock_in(CAST(:seconds AS double precision))),
    silenced_by = :actor
WHERE id = :id AND closed_at IS NULL
RETURNING rule, subject;
