-- No more executions of it; those that were stay.
UPDATE document_projects SET removed_at = (SELECT clock())
WHERE id = :project AND removed_at IS NULL
RETURNING id;
