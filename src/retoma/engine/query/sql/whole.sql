-- name: audit_of
-- Lines of the audit log about one batch, or about or by one job, since it was made.
SELECT id, at, actor, verb, subject, CAST(details AS text) FROM audit
WHERE at >= :since
  AND ((subject = :batch AND verb LIKE 'batch.%') OR subject = :job OR actor = :job)
ORDER BY id;

-- name: batch_jobs
-- The ids of a batch's jobs, oldest first, a page at a time.
SELECT id FROM jobs
WHERE batch = :batch AND id > :after
  AND id >= coalesce((SELECT first_job FROM batches WHERE id = :batch), 1)
  AND id <= coalesce((SELECT last_job FROM batches WHERE id = :batch), 0)
ORDER BY id LIMIT :limit;
