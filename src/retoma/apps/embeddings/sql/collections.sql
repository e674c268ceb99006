-- name: add_collection
-- Write down a collection; nothing where there is one of that name.
INSERT INTO embeddings_collections (name, model, version, dims, size, overlap, created_by, created_at)
VALUES (:name, :model, :version, :dims, :size, :overlap, :actor, (SELECT clock()))
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- name: change_collection
-- From now on its documents are embedded so; what was made before is searched until the new is there.
UPDATE embeddings_collections
SET model = :model, version = :version, dims = :dims, size = :size, overlap = :overlap,
    edition = :edition + 1
WHERE id = :collection AND edition = :edition
RETURNING edition;

-- name: count_behind
-- In which states the jobs of those documents are that are not embedded yet.
SELECT coalesce(j.state, 'none'), count(*)
FROM embeddings_documents d LEFT JOIN jobs j ON j.id = d.job
WHERE d.collection = :collection AND d.edition < :edition
GROUP BY j.state;

-- name: count_documents
-- How many documents a collection has, how many of them are embedded, and in how many chunks.
SELECT count(*), count(*) FILTER (WHERE edition = :edition), coalesce(sum(chunks), 0)
FROM embeddings_documents WHERE collection = :collection;

-- name: get_collection
-- One collection, by its name.
SELECT id, name, model, version, dims, size, overlap, edition, batch, created_by, created_at
FROM embeddings_collections WHERE name = :name;

-- name: list_behind
-- Documents that are not embedded as their collection wants it, and that nobody is going to take up.
-- A job that is at work may have begun before what is wanted was changed.
SELECT d.id
FROM embeddings_documents d LEFT JOIN jobs j ON j.id = d.job
WHERE d.collection = :collection AND d.edition < :edition
  AND (j.id IS NULL OR j.state NOT IN ('waiting', 'parked'))
ORDER BY d.id;

-- name: list_collections
-- Collections by their names, a page at a time.
SELECT id, name, model, version, dims, size, overlap, edition, batch, created_by, created_at
FROM embeddings_collections WHERE name > :after ORDER BY name LIMIT :n;

-- name: lock_collection
-- Whoever changes what a collection has waits here for the others who do.
UPDATE embeddings_collections SET edition = edition WHERE name = :name
RETURNING id, name, model, version, dims, size, overlap, edition, batch, created_by, created_at;

-- name: name_batch
-- The batch by which a collection is embedded anew.
UPDATE embeddings_collections SET batch = :batch WHERE id = :collection;

-- name: remove_collection
-- Delete a collection that has no documents left.
DELETE FROM embeddings_collections
WHERE id = :collection
  AND NOT EXISTS (SELECT 1 FROM embeddings_documents d WHERE d.collection = :collection)
RETURNING id;
