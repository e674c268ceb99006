-- name: embedded_documents
-- All documents of a collection that can be searched, and since when each is as it is.
SELECT id, embedded_at, chunks FROM embeddings_documents
WHERE collection = :collection AND edition > 0;

-- name: embedded_since
-- Documents of a collection that were embedded at this time or later.
SELECT id, embedded_at, chunks FROM embeddings_documents
WHERE collection = :collection AND embedded_at >= :since AND edition > 0;
