-- Documents of a collection whose words are not in the index as they are now.
-- Twin: rows are locked one by one on PostgreSQL; SQLite has one writer.
SELECT id, edition, chunks FROM embeddings_documents
WHERE collection = :collection AND keyword_edition <> edition
ORDER BY id LIMIT :n;
