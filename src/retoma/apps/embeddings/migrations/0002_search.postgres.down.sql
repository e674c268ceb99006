-- Texts are found by their vectors alone; the metadata of documents is gone.
DROP TABLE embeddings_words;

DROP TABLE embeddings_metadata;

DROP INDEX embeddings_documents_unindexed;

ALTER TABLE embeddings_documents DROP COLUMN keyword_edition;

ALTER TABLE embeddings_documents DROP COLUMN metadata;
