-- Cancel jobs nobody holds. Compare and set on the state somebody saw; their epoch stays.
UPDATE jobs SET state = 'canceled', seq = seq + 1, cancel_at = (SELECT clock()),
    ended_at = (SELECT clock()), turn = NULL, aside = NULL, reason = NULL, code = NULL
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND state = :was
RETURNING id;
