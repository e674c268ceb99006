-- Chunks of a document that have no vector yet, in order.
SELECT k.hash, k.text FROM embeddings_chunks k
WHERE k.document = :document AND k.edition = :edition
  AND NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = k.hash)
ORDER BY k.ordinal LIMIT :n;
