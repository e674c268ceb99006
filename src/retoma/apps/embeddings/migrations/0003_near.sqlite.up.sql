-- The edition whose vectors are in an index of the database: here there is none, the column is for both.
ALTER TABLE embeddings_documents ADD COLUMN vector_edition integer NOT NULL DEFAULT 0;
