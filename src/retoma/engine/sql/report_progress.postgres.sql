-- How far jobs are, the last word of each. Touches nothing whose runner or epoch has passed.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- The limits limit nothing: see save_steps.
UPDATE jobs j SET progress = t.progress, note = t.note, progress_at = (SELECT clock())
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint,
          epoch integer, progress double precision, note text)
          LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
WHERE j.id = t.job AND j.epoch = t.epoch AND j.state = 'running' AND j.runner IS NOT DISTINCT FROM :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING j.id, j.epoch, j.cancel_at IS NOT NULL;
