-- No document is in an index of vectors.
DROP TABLE embeddings_near;

DROP INDEX embeddings_documents_unplaced;

ALTER TABLE embeddings_documents DROP COLUMN vector_edition;
