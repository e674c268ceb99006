-- Some documents of a collection, for whoever deletes all of them.
SELECT id FROM embeddings_documents WHERE collection = :collection ORDER BY id LIMIT :n;
