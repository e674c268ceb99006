-- Which of these claims this runner still has; nobody changes that before the transaction ends.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT j.id, j.epoch
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'
                 AND j.state = 'running' AND +j.runner = :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');
