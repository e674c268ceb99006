-- Delete the oldest lines of the audit log, a bite at a time.
-- Twin: a statement here; there a function of the owner, for a role that may not delete.
DELETE FROM audit
WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT :bite) AND at < :events_before
RETURNING id;
