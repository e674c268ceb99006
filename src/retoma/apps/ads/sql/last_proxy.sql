-- By which proxy the worker's session before this one went out, and why that ended.
SELECT proxy, proxy_name, coalesce(lost, ended_for) FROM ads_sessions
WHERE worker = :worker AND id < :session AND proxy IS NOT NULL
ORDER BY id DESC LIMIT 1;
