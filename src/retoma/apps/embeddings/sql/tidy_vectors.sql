-- Delete vectors that no chunk has needed for an hour, some at a time.
DELETE FROM embeddings_vectors
WHERE orphan_at < clock_in(-3600)
  AND hash IN (SELECT v.hash FROM embeddings_vectors v WHERE v.orphan_at < clock_in(-3600)
               AND NOT EXISTS (SELECT 1 FROM embeddings_chunks k WHERE k.hash = v.hash)
               ORDER BY v.orphan_at LIMIT :n)
RETURNING hash;
