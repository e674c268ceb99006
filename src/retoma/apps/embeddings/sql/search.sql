-- name: searched_collection
-- The collection of a name, and by which model its texts are embedded.
SELECT id, model, version, dims FROM embeddings_collections WHERE name = :name;

-- name: names_beginning
-- Documents of a collection whose names begin so.
SELECT id FROM embeddings_documents
WHERE collection = :collection AND name >= :first AND name < :last;
