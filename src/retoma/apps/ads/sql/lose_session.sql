-- A session is of no use any more; the first reason stays.
UPDATE ads_sessions SET lost = :code, asked_rest = :rest WHERE id = :session AND lost IS NULL AND ended_at IS NULL
RETURNING worker, proxy_name;
