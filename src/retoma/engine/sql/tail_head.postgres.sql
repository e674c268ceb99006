-- The cursor of now: everything that this very snapshot sees has been told, nothing else.
-- Twin: a snapshot here, the last row there.
SELECT CAST(pg_current_snapshot() AS text);
