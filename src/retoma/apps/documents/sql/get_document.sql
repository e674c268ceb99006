-- What a story is told of its document, and by which rules it is classified.
SELECT d.id, d.execution, d.code, d.name, d.sha256, d.size, e.rules, e.epoch,
       e.blocked_code
FROM documents d JOIN executions e ON e.id = d.execution WHERE d.id = :document;
