-- The batch by which a collection is embedded anew.
UPDATE embeddings_collections SET batch = :batch WHERE id = :collection;
