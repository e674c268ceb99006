-- What may be used again, the newest first, a page at a time.
SELECT hash, kind, step, version, key, job, at, cost FROM reuse
WHERE (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:step AS text) IS NULL OR step = :step)
ORDER BY at DESC, hash LIMIT :limit;
