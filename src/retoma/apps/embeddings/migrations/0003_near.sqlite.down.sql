-- No document is in an index of vectors.
ALTER TABLE embeddings_documents DROP COLUMN vector_edition;
