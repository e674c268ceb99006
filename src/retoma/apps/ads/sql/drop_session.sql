-- A session that was never asked for gives way to another.
UPDATE ads_sessions SET ended_at = (SELECT clock())
WHERE id = :session AND ended_at IS NULL AND proxy IS NULL;
