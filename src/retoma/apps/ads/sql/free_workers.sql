-- Workers that may have a session and have none; when those in error have rested; now.
SELECT w.id, w.rests_until, (SELECT clock())
FROM ads_workers w
WHERE w.active = TRUE AND w.deleted_at IS NULL AND w.status IN ('idle', 'error')
  AND NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = w.id AND s.ended_at IS NULL)
ORDER BY w.id;
