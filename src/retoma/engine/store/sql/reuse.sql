-- name: find_reuse
-- What another job has made of the same, if it is not too old.
SELECT value, cost, job FROM reuse
WHERE hash = :hash AND (CAST(:age AS double precision) IS NULL
                        OR at > clock_in(-CAST(:age AS double precision)));

-- name: forget_reuse
-- Nobody uses these again; a bite at a time.
DELETE FROM reuse WHERE hash IN (
    SELECT hash FROM reuse
    WHERE (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:step AS text) IS NULL OR step = :step)
      AND (CAST(:version AS integer) IS NULL OR version = :version)
      AND (CAST(:key_hash AS text) IS NULL OR key_hash = :key_hash)
      AND at < :before
    LIMIT :bite)
RETURNING hash;

-- name: list_reuse
-- What may be used again, the newest first, a page at a time.
SELECT hash, kind, step, version, key, job, at, cost FROM reuse
WHERE (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:step AS text) IS NULL OR step = :step)
ORDER BY at DESC, hash LIMIT :limit;
