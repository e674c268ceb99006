-- Which project is called so.
SELECT id FROM document_projects WHERE name = :name AND removed_at IS NULL;
