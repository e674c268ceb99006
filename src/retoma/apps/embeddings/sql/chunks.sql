-- name: export_chunks
-- Chunks of a collection with their vectors, as they are now, in the order they came; a page at a time.
SELECT d.id, k.ordinal, d.name, d.metadata, k.begins, k.ends, k.text, v.model, v.version, v.vector
FROM embeddings_documents d
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition
JOIN embeddings_vectors v ON v.hash = k.hash
WHERE d.collection = :collection AND d.id >= :document AND (d.id > :document OR k.ordinal > :ordinal)
ORDER BY d.id, k.ordinal LIMIT :n;

-- name: chunks_of
-- What the chunks of a document say, in order.
SELECT hash, text FROM embeddings_chunks
WHERE document = :document AND edition = :edition ORDER BY ordinal;

-- name: remove_editions
-- Delete the chunks of editions before this one; vectors that none needs any more are deleted later.
UPDATE embeddings_vectors SET orphan_at = (SELECT clock())
WHERE hash IN (SELECT k.hash FROM embeddings_chunks k
               WHERE k.document = :document AND k.edition < :edition)
  AND NOT EXISTS (SELECT 1 FROM embeddings_chunks o
                  WHERE o.hash = embeddings_vectors.hash
                    AND (o.document <> :document OR o.edition >= :edition));

DELETE FROM embeddings_chunks WHERE document = :document AND edition < :edition;

-- name: tidy_flights
-- Forget what claims took up that hold their jobs no more.
DELETE FROM embeddings_flights
WHERE NOT EXISTS (
    SELECT 1 FROM jobs h
    WHERE h.id = embeddings_flights.job AND h.epoch = embeddings_flights.epoch AND h.state = 'running');

-- name: tidy_vectors
-- Delete vectors that no chunk has needed for an hour, some at a time.
DELETE FROM embeddings_vectors
WHERE orphan_at < clock_in(-3600)
  AND hash IN (SELECT v.hash FROM embeddings_vectors v WHERE v.orphan_at < clock_in(-3600)
               AND NOT EXISTS (SELECT 1 FROM embeddings_chunks k WHERE k.hash = v.hash)
               ORDER BY v.orphan_at LIMIT :n)
RETURNING hash;
