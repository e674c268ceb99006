-- name: look_at_job
-- Whether a job of this queue stands in line; zero rows: there is none.
SELECT state = 'waiting' AND turn IS NOT NULL AND aside IS NULL FROM jobs
WHERE id = :job AND queue = :queue;

-- name: ready_in_batch
-- Jobs of a batch that stand in line, the first of them.
SELECT j.queue, j.id FROM batches b JOIN jobs j ON j.id BETWEEN b.first_job AND b.last_job
WHERE b.id = :batch AND j.batch = :batch AND j.state = 'waiting' AND j.turn IS NOT NULL
  AND j.aside IS NULL
ORDER BY j.id LIMIT :most;
