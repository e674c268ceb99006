-- Delete the oldest closed alerts, a bite at a time.
DELETE FROM alerts
WHERE id IN (SELECT id FROM alerts ORDER BY id LIMIT :bite) AND closed_at < :events_before
RETURNING id;
