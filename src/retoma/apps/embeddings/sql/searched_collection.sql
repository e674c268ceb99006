-- The collection of a name, and by which model its texts are embedded.
SELECT id, model, version, dims FROM embeddings_collections WHERE name = :name;
