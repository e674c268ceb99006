-- What a story is told of its document, and by which rules it is classified.
SELECT d.id, d.execution, d.code, d.name, d.sha256, d.size, e.rules
FROM documents d JOIN executions e ON e.id = d.execution WHERE d.id = :document;
