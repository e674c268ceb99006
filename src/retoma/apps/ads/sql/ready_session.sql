-- A session may be given missions.
UPDATE ads_sessions SET ready_at = (SELECT clock()) WHERE id = :session AND ended_at IS NULL
RETURNING opened_at, ready_at, worker, proxy_name;
