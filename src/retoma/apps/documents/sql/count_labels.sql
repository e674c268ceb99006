-- How many documents of an execution have which label.
SELECT j.result ->> 'label', count(*)
FROM documents d JOIN jobs j ON j.id = d.job
WHERE d.execution = :execution AND j.state = 'done'
GROUP BY j.result ->> 'label' ORDER BY count(*) DESC, 1;
