-- One project that is there.
SELECT id, name, rules, created_by, created_at FROM document_projects
WHERE id = :project AND removed_at IS NULL;
