-- Which of these claims this runner still has; nobody changes that before the transaction ends.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
-- The limits limit nothing: see save_steps.
SELECT j.id, j.epoch
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
          AS t(job bigint, epoch integer) LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
JOIN jobs j ON j.id = t.job AND j.epoch = t.epoch AND j.state = 'running'
           AND j.runner IS NOT DISTINCT FROM :boot
WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
ORDER BY j.id FOR UPDATE OF j;
