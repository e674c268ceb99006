-- Lines of the audit log about one batch, or about or by one job, since it was made.
SELECT id, at, actor, verb, subject, CAST(details AS text) FROM audit
WHERE at >= :since
  AND ((subject = :batch AND verb LIKE 'batch.%') OR subject = :job OR actor = :job)
ORDER BY id;
