-- The ids of a batch's jobs, oldest first, a page at a time.
SELECT id FROM jobs
WHERE batch = :batch AND id > :after
  AND id >= coalesce((SELECT first_job FROM batches WHERE id = :batch), 1)
  AND id <= coalesce((SELECT last_job FROM batches WHERE id = :batch), 0)
ORDER BY id LIMIT :limit;
