-- Write down a collection; nothing where there is one of that name.
INSERT INTO embeddings_collections (name, model, version, dims, size, overlap, created_by, created_at)
VALUES (:name, :model, :version, :dims, :size, :overlap, :actor, (SELECT clock()))
ON CONFLICT (name) DO NOTHING
RETURNING id;
