-- The vector of a text by its hash, of a chunk's or of a question's.
SELECT vector FROM embeddings_vectors WHERE hash = :hash;
