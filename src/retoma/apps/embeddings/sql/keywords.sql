-- name: count_unindexed
-- How many documents of a collection are not in the index of words as they are now.
SELECT count(*) FROM embeddings_documents
WHERE collection = :collection AND keyword_edition <> edition;
