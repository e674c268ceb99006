-- How far jobs are, the last word of each. Touches nothing whose runner or epoch has passed.
-- Twin: sets of rows arrive by json_to_recordset there, by jsonb_each here.
UPDATE jobs SET progress = t.progress, note = t.note, progress_at = (SELECT clock())
FROM (SELECT value ->> 'job' AS job, value ->> 'epoch' AS epoch,
             value ->> 'progress' AS progress, value ->> 'note' AS note
      FROM jsonb_each(:rows)) t
WHERE jobs.id = t.job AND jobs.epoch = t.epoch AND jobs.state = 'running'
  AND +jobs.runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING id, jobs.epoch, cancel_at IS NOT NULL;
