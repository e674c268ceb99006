-- Collections by their names, a page at a time.
SELECT id, name, model, version, dims, size, overlap, edition, batch, created_by, created_at
FROM embeddings_collections WHERE name > :after ORDER BY name LIMIT :n;
