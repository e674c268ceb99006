-- Delete the oldest lines of the audit log, a bite at a time.
DELETE FROM audit
WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT :bite) AND at < :events_before
RETURNING id;
