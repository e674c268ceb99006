-- Documents of a collection that were embedded at this time or later.
SELECT id, embedded_at, chunks FROM embeddings_documents
WHERE collection = :collection AND embedded_at >= :since AND edition > 0;
