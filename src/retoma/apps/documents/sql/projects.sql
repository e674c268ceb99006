-- name: add_project
-- Write down a project; nobody else of its name is there, or nothing is written.
INSERT INTO document_projects (name, rules, created_by, created_at)
VALUES (:name, :rules, :actor, (SELECT clock()))
ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING
RETURNING id;

-- name: change_project
-- Another name or other rules, for executions to come: each keeps those it began with.
UPDATE document_projects SET name = :name, rules = :rules
WHERE id = :project AND removed_at IS NULL
RETURNING id;

-- name: get_project
-- One project that is there.
SELECT id, name, rules, created_by, created_at FROM document_projects
WHERE id = :project AND removed_at IS NULL;

-- name: list_projects
-- A page of projects, the newest first.
SELECT id, name, rules, created_by, created_at FROM document_projects
WHERE removed_at IS NULL AND (CAST(:before AS bigint) IS NULL OR id < :before)
ORDER BY id DESC LIMIT :n;

-- name: project_by_name
-- Which project is called so.
SELECT id FROM document_projects WHERE name = :name AND removed_at IS NULL;

-- name: remove_project
-- No more executions of it; those that were stay.
UPDATE document_projects SET removed_at = (SELECT clock())
WHERE id = :project AND removed_at IS NULL
RETURNING id;
