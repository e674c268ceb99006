-- How many documents of a project the model gave which label, and which one people said it is.
SELECT w.predicted, w.label, count(*)
FROM executions e JOIN documents d ON d.execution = e.id JOIN document_reviews w ON w.document = d.id
WHERE e.project = :project
GROUP BY w.predicted, w.label ORDER BY w.predicted, count(*) DESC, w.label;
