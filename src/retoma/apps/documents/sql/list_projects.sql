-- A page of projects, the newest first.
SELECT id, name, rules, created_by, created_at FROM document_projects
WHERE removed_at IS NULL AND (CAST(:before AS bigint) IS NULL OR id < :before)
ORDER BY id DESC LIMIT :n;
