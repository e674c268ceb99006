-- Set aside what a shut gate holds, in the gate's own line. No move: it waits as before.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- Whoever was never tried stands as far back as in its own submission, who was, in front: so no new
-- job passes an old one, and no large batch a small one. The epoch stays: nobody holds the job.
-- The limits limit nothing: see save_steps.
UPDATE jobs j SET aside = s.gate,
    turn = coalesce((SELECT min(w.turn) FROM jobs w
                     WHERE w.state = 'waiting' AND w.aside = s.gate AND w.priority = j.priority), 0)
         + CASE WHEN j.epoch > 0 THEN 0
                ELSE 1 + j.id - coalesce((SELECT b.first_job FROM batches b WHERE b.id = j.batch), j.id)
           END
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, gate text)
          LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) s
WHERE j.id = s.job AND j.state = 'waiting';
