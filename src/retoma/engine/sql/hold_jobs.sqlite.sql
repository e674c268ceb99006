-- Hold the rows of many jobs for this transaction, where this runner and epoch still have them; which are wanted.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
UPDATE jobs SET progress_at = (SELECT clock())
FROM (SELECT value ->> 'job' AS job, value ->> 'epoch' AS epoch FROM json_each(:rows)) t
WHERE jobs.id = t.job AND jobs.epoch = t.epoch AND jobs.state = 'running'
  AND +jobs.runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING id, jobs.epoch, cancel_at IS NULL;
