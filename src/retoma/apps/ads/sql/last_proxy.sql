-- By which proxy the worker's session before this one went out.
SELECT proxy, proxy_name FROM ads_sessions
WHERE worker = :worker AND id < :session AND proxy IS NOT NULL
ORDER BY id DESC LIMIT 1;
