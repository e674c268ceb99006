-- name: hint_jobs
-- Note that these ready jobs are hinted now, none twice in one wait and `again`; which those are.
-- Twin: a queue's first rows come by LATERAL here, by a list of ids that `IN` looks up there.
-- Who was submitted a moment ago was hinted then, and has no row: it is passed over while `young`.
-- What has a limit is not: it may have been hinted in vain, and been put back since.
-- Without `repeat` nobody is hinted twice in one wait: those who heed hints have enough of them.
DELETE FROM hints WHERE CAST(:repeat AS integer) = 1 AND hinted_at <= (SELECT clock_in(-2 * CAST(:again AS double precision)));

INSERT INTO hints (job, epoch, queue, hinted_at)
SELECT ready.id, ready.epoch, ready.queue, (SELECT clock())
FROM (
    SELECT w.* FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text)
    CROSS JOIN LATERAL (
        (SELECT id, epoch, queue, priority, turn FROM jobs j
         WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
           AND lost < 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
               CAST(:knows AS json))))
           AND (epoch > 0 OR run_at IS NOT NULL OR limit_key IS NOT NULL
                OR created_at <= (SELECT clock_in(- CAST(:young AS double precision))))
           AND NOT EXISTS (SELECT FROM hints h WHERE h.job = j.id AND h.epoch = j.epoch
                           AND (CAST(:repeat AS integer) = 0 OR h.hinted_at > (
                               SELECT clock_in(- CAST(:again AS double precision)))))
         ORDER BY priority, turn, id LIMIT :most)
        UNION ALL
        (SELECT id, epoch, queue, priority, turn FROM jobs j
         WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
           AND lost >= 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
               CAST(:knows AS json))))
           AND NOT EXISTS (SELECT FROM hints h WHERE h.job = j.id AND h.epoch = j.epoch
                           AND (CAST(:repeat AS integer) = 0 OR h.hinted_at > (
                               SELECT clock_in(- CAST(:again AS double precision)))))
         ORDER BY priority, turn, id LIMIT :most)
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :most
) ready
ORDER BY ready.id
ON CONFLICT (job) DO UPDATE SET epoch = excluded.epoch, hinted_at = excluded.hinted_at
WHERE hints.epoch <> excluded.epoch OR hints.hinted_at <= (SELECT clock_in(- CAST(:again AS double precision)))
RETURNING queue, job;
