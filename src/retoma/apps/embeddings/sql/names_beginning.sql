-- Documents of a collection whose names begin so.
SELECT id FROM embeddings_documents
WHERE collection = :collection AND name >= :first AND name < :last;
