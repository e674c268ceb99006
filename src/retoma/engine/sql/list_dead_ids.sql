-- The ids of dead letters that nobody has put away, newest first, by their own index.
SELECT id FROM jobs
WHERE state = 'dead' AND discarded_at IS NULL
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;
