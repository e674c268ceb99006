-- Jobs of a kind that ended in an unusual way or are parked, newest first, by their own index.
SELECT id FROM jobs
WHERE kind = :kind AND state = :state AND state IN ('parked', 'skipped', 'dead', 'canceled')
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;
