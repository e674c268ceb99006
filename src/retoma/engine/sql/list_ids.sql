-- The ids of jobs, newest first, a page at a time. Those of a batch lie between its first and its last.
SELECT id FROM jobs
WHERE (CAST(:before AS bigint) IS NULL OR id < :before)
  AND (CAST(:state AS text) IS NULL OR state = :state)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
  AND id >= CASE WHEN CAST(:batch AS bigint) IS NULL THEN 0
                 ELSE coalesce((SELECT first_job FROM batches WHERE id = :batch), 1) END
  AND id <= CASE WHEN CAST(:batch AS bigint) IS NULL THEN 9223372036854775807
                 ELSE coalesce((SELECT last_job FROM batches WHERE id = :batch), 0) END
ORDER BY id DESC LIMIT :limit;
