-- Jobs of a batch that stand in line, the first of them.
SELECT j.queue, j.id FROM batches b JOIN jobs j ON j.id BETWEEN b.first_job AND b.last_job
WHERE b.id = :batch AND j.batch = :batch AND j.state = 'waiting' AND j.turn IS NOT NULL
  AND j.aside IS NULL
ORDER BY j.id LIMIT :most;
