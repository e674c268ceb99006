-- How many documents of an execution have which label: what a person said of it counts.
SELECT coalesce(w.label, j.result ->> 'label'), count(*)
FROM documents d JOIN jobs j ON j.id = d.job
LEFT JOIN document_reviews w ON w.document = d.id
WHERE d.execution = :execution AND j.state = 'done'
GROUP BY coalesce(w.label, j.result ->> 'label') ORDER BY count(*) DESC, 1;
