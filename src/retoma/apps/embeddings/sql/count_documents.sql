-- How many documents a collection has, how many of them are embedded, and in how many chunks.
SELECT count(*), count(*) FILTER (WHERE edition = :edition), coalesce(sum(chunks), 0)
FROM embeddings_documents WHERE collection = :collection;
