-- Another name or other rules, for executions to come: each keeps those it began with.
UPDATE document_projects SET name = :name, rules = :rules
WHERE id = :project AND removed_at IS NULL
RETURNING id;
