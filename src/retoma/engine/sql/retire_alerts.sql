-- Delete those of a stretch of alerts that were closed long ago; open ones stay.
DELETE FROM alerts
WHERE id > :after AND id <= :last AND closed_at < :events_before
RETURNING id;
