-- A session is known to have ended: its proxy is free.
UPDATE ads_sessions SET ended_at = (SELECT clock()), ended_for = :reason
WHERE id = :session AND ended_at IS NULL
RETURNING worker, proxy, lost, asked_rest;
