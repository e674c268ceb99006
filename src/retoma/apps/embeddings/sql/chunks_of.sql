-- What the chunks of a document say, in order.
SELECT hash, text FROM embeddings_chunks
WHERE document = :document AND edition = :edition ORDER BY ordinal;
