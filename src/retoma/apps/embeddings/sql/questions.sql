-- name: get_vector
-- The vector of a text by its hash, of a chunk's or of a question's.
SELECT vector FROM embeddings_vectors WHERE hash = :hash;

-- name: keep_question
-- Keep the vector of a question, once for its content: until then as if a chunk said it.
INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at, orphan_at)
VALUES (:hash, :model, :version, :dims, :vector, :job, (SELECT clock()), clock_in(:kept))
ON CONFLICT (hash) DO NOTHING;
