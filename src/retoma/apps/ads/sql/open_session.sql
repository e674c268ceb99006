-- A session has its proxy, and is about to be asked for; since when it had waited for one.
UPDATE ads_sessions SET proxy = :proxy, proxy_name = :name, opened_at = (SELECT clock())
WHERE id = :session
RETURNING waits_since, opened_at;
