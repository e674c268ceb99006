-- A worker answers again, or has not since now.
UPDATE ads_sessions
SET silent_since = CASE WHEN :silent = 1 THEN coalesce(silent_since, (SELECT clock())) END
WHERE id = :session AND ended_at IS NULL
  AND (silent_since IS NULL AND :silent = 1 OR silent_since IS NOT NULL AND :silent = 0);
