-- By which rules an execution is classified, and those that its project has now.
SELECT e.rules, p.rules FROM executions e
LEFT JOIN document_projects p ON p.id = e.project AND p.removed_at IS NULL
WHERE e.id = :execution;
