-- A page of what people said of the labels of a project, in the order of its documents.
SELECT d.id, d.execution, d.code, d.name, d.sha256, w.predicted, w.label, w.reviewer, w.at
FROM executions e JOIN documents d ON d.execution = e.id JOIN document_reviews w ON w.document = d.id
WHERE e.project = :project AND d.id > :after
ORDER BY d.id LIMIT :n;
