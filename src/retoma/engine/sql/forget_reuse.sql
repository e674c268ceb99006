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
