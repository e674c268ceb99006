-- Jobs of a batch that ended in an unusual way or are parked, newest first, by their own index.
SELECT id FROM jobs
WHERE batch = :batch AND state = :state AND state IN ('parked', 'skipped', 'dead', 'canceled')
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
ORDER BY id DESC LIMIT :limit;
