-- Delete the chunks of editions before this one; vectors that none needs any more are deleted later.
UPDATE embeddings_vectors SET orphan_at = (SELECT clock())
WHERE hash IN (SELECT k.hash FROM embeddings_chunks k
               WHERE k.document = :document AND k.edition < :edition)
  AND NOT EXISTS (SELECT 1 FROM embeddings_chunks o
                  WHERE o.hash = embeddings_vectors.hash
                    AND (o.document <> :document OR o.edition >= :edition));

DELETE FROM embeddings_chunks WHERE document = :document AND edition < :edition;
