-- All documents of a collection that can be searched, and since when each is as it is.
SELECT id, embedded_at, chunks FROM embeddings_documents
WHERE collection = :collection AND edition > 0;
