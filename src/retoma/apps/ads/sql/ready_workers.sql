-- Workers whose session is ready, and has not done its share.
SELECT s.worker FROM ads_sessions s
JOIN pool_items i ON i.pool = 'ads.sessions' AND i.name = s.worker
WHERE s.ended_at IS NULL AND s.ready_at IS NOT NULL AND s.lost IS NULL AND s.served < :most
ORDER BY s.worker;
