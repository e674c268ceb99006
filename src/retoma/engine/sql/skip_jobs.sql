-- Jobs nobody holds end without being done. Compare and set on the state somebody saw; their epoch stays.
UPDATE jobs SET state = 'skipped', seq = seq + 1, ended_at = (SELECT clock()), turn = NULL,
    aside = NULL, reason = NULL, code = NULL
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND state = :was
RETURNING id;
