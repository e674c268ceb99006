-- name: hint_jobs
-- Note that these ready jobs are hinted now, none twice in one wait and `again`; which those are.
-- Twin: a queue's first rows come by LATERAL there, by a list of ids that `IN` looks up here.
-- Who was submitted a moment ago was hinted then, and has no row: it is passed over while `young`.
-- What has a limit is not: it may have been hinted in vain, and been put back since.
-- Without `repeat` nobody is hinted twice in one wait: those who heed hints have enough of them.
DELETE FROM hints WHERE :repeat = 1 AND hinted_at <= (SELECT clock_in(-2 * :again));

INSERT INTO hints (job, epoch, queue, hinted_at)
SELECT j.id, j.epoch, j.queue, (SELECT clock())
FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost < 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
      AND (w.epoch > 0 OR w.run_at IS NOT NULL OR w.limit_key IS NOT NULL
           OR w.created_at <= (SELECT clock_in(-:young)))
      AND NOT EXISTS (SELECT 1 FROM hints h WHERE h.job = w.id AND h.epoch = w.epoch
                      AND (:repeat = 0 OR h.hinted_at > (SELECT clock_in(-:again))))
    ORDER BY w.priority, w.turn, w.id LIMIT :most) OR j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost >= 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
      AND NOT EXISTS (SELECT 1 FROM hints h WHERE h.job = w.id AND h.epoch = w.epoch
                      AND (:repeat = 0 OR h.hinted_at > (SELECT clock_in(-:again))))
    ORDER BY w.priority, w.turn, w.id LIMIT :most)
WHERE true
ORDER BY j.priority, j.turn, j.id LIMIT :most
ON CONFLICT (job) DO UPDATE SET epoch = excluded.epoch, hinted_at = excluded.hinted_at
RETURNING queue, job;
