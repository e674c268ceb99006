-- One collection, by its name.
SELECT id, name, model, version, dims, size, overlap, edition, batch, created_by, created_at
FROM embeddings_collections WHERE name = :name;
