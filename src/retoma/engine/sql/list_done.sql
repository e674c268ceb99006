-- Done jobs of a kind, newest first, by their own index.
SELECT id FROM jobs
WHERE kind = :kind AND state = 'done'
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;
