-- Delete a document and its chunks; vectors that no chunk needs any more are deleted later.
DELETE FROM embeddings_documents WHERE id = :document;

UPDATE embeddings_vectors SET orphan_at = (SELECT clock())
WHERE hash IN (SELECT k.hash FROM embeddings_chunks k WHERE k.document = :document)
  AND NOT EXISTS (SELECT 1 FROM embeddings_chunks o
                  WHERE o.hash = embeddings_vectors.hash AND o.document <> :document);

DELETE FROM embeddings_words
WHERE rowid BETWEEN CAST(:document AS bigint) * 32768 AND CAST(:document AS bigint) * 32768 + 32767;

DELETE FROM embeddings_metadata WHERE document = :document;

DELETE FROM embeddings_chunks WHERE document = :document;
