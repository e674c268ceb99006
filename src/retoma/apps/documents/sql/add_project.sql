-- Write down a project; nobody else of its name is there, or nothing is written.
INSERT INTO document_projects (name, rules, created_by, created_at)
VALUES (:name, :rules, :actor, (SELECT clock()))
ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING
RETURNING id;
