-- From now on its documents are embedded so; what was made before is searched until the new is there.
UPDATE embeddings_collections
SET model = :model, version = :version, dims = :dims, size = :size, overlap = :overlap,
    edition = :edition + 1
WHERE id = :collection AND edition = :edition
RETURNING edition;
