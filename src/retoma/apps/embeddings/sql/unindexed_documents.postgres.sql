-- Documents of a collection whose words are not in the index as they are now, but those that somebody else is indexing.
-- Twin: rows are locked one by one here; SQLite has one writer.
SELECT id, edition, chunks FROM embeddings_documents
WHERE collection = :collection AND keyword_edition <> edition
ORDER BY id LIMIT :n FOR NO KEY UPDATE SKIP LOCKED;
