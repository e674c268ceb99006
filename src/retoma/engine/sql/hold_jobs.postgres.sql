-- Hold the rows of many jobs for this transaction, where this runner and epoch still have them; which are wanted.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
-- The limits limit nothing: see save_steps.
WITH held AS (
    SELECT j.id, j.epoch
    FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
              AS t(job bigint, epoch integer) LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
    JOIN jobs j ON j.id = t.job AND j.epoch = t.epoch AND j.state = 'running'
               AND j.runner IS NOT DISTINCT FROM :boot
    WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    ORDER BY j.id FOR NO KEY UPDATE OF j
)
UPDATE jobs SET progress_at = (SELECT clock()) FROM held
WHERE jobs.id = held.id AND jobs.epoch = held.epoch
RETURNING jobs.id, jobs.epoch, cancel_at IS NULL;
