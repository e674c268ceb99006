-- What stories are told of their documents, and by which rules these are classified.
-- Twin: a set of ids arrives by json_array_elements_text here, by json_each there.
SELECT d.id, d.execution, d.code, d.name, d.sha256, d.size, e.rules, e.epoch,
       e.blocked_code
FROM documents d JOIN executions e ON e.id = d.execution
WHERE d.id = ANY(ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS bigint)));
