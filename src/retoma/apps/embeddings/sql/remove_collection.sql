-- Delete a collection that has no documents left.
DELETE FROM embeddings_collections
WHERE id = :collection
  AND NOT EXISTS (SELECT 1 FROM embeddings_documents d WHERE d.collection = :collection)
RETURNING id;
