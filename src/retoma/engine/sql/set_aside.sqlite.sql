-- Set aside what a shut gate holds, in the gate's own line. No move: it waits as before.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here; and every row would see
-- those set aside before it, so their places are told first (without a
-- key: it would be looked into for every job there is).
-- Whoever was never tried stands as far back as in its own submission, who was, in front: so no new
-- job passes an old one, and no large batch a small one. The epoch stays: nobody holds the job.
CREATE TEMP TABLE IF NOT EXISTS shut (job integer, gate text, turn integer);

DELETE FROM temp.shut;

INSERT INTO temp.shut
SELECT j.id, o.value ->> 'gate',
       coalesce((SELECT min(w.turn) FROM jobs w
                 WHERE w.state = 'waiting' AND w.aside = o.value ->> 'gate'
                   AND w.priority = j.priority), 0)
     + CASE WHEN j.epoch > 0 THEN 0
            ELSE 1 + j.id - coalesce((SELECT b.first_job FROM batches b WHERE b.id = j.batch), j.id)
       END
FROM json_each(:rows) o CROSS JOIN jobs j ON j.id = o.value ->> 'job';

UPDATE jobs SET aside = s.gate, turn = s.turn
FROM temp.shut s
WHERE jobs.id = s.job AND jobs.state = 'waiting';
