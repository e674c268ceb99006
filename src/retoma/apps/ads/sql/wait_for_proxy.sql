-- A session waits for a proxy; only that it begins to is news.
UPDATE ads_sessions SET waits_since = (SELECT clock())
WHERE id = :session AND waits_since IS NULL AND proxy IS NULL AND ended_at IS NULL
RETURNING worker;
