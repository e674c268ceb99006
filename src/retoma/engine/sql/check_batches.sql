-- Batches whose jobs lie outside the range of ids it names, and batches of jobs that are not there, for the checker.
SELECT found.batch, b.first_job, b.last_job, found.first_job, found.last_job, found.n
FROM (SELECT batch, min(id) AS first_job, max(id) AS last_job, count(*) AS n
      FROM jobs WHERE batch IS NOT NULL GROUP BY batch) found
LEFT JOIN batches b ON b.id = found.batch
WHERE b.id IS NULL OR found.first_job < b.first_job OR found.last_job > b.last_job
ORDER BY found.batch LIMIT :most;
