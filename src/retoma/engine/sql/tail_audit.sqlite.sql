-- Lines of the audit log between two of them.
-- Twin: row numbers here, snapshots there.
SELECT id, at, actor, verb, subject, details FROM audit
WHERE id > max(:old, :after) AND id <= :new
ORDER BY id
LIMIT :most;
