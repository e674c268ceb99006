-- All chunks of this edition have their vectors: from now on the document is searched by them.
UPDATE embeddings_documents SET edition = :edition, embedded_at = (SELECT clock()),
    chunks = (SELECT count(*) FROM embeddings_chunks k
              WHERE k.document = :document AND k.edition = :edition)
WHERE id = :document AND edition <= :edition
  AND NOT EXISTS (
    SELECT 1 FROM embeddings_chunks k
    WHERE k.document = :document AND k.edition = :edition
      AND NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = k.hash))
RETURNING chunks;
