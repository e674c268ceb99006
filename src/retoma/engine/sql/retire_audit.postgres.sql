-- Delete the oldest lines of the audit log, a bite at a time.
-- Twin: a function of the owner deletes here, for a role that may not; a statement there.
SELECT * FROM retoma.retire_audit(:bite, :events_before);
