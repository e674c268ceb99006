-- Number the next event of a job, if this runner and epoch still hold it.
UPDATE jobs SET seq = seq + 1
WHERE id = :job AND epoch = :epoch AND state = 'running' AND runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING seq;
