-- Whoever changes what a collection has waits here for the others who do.
UPDATE embeddings_collections SET edition = edition WHERE name = :name
RETURNING id, name, model, version, dims, size, overlap, edition, batch, created_by, created_at;
