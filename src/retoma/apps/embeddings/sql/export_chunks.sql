-- Chunks of a collection with their vectors, as they are now, in the order they came; a page at a time.
SELECT d.id, k.ordinal, d.name, d.metadata, k.begins, k.ends, k.text, v.model, v.version, v.dims, v.vector
FROM embeddings_documents d
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition
JOIN embeddings_vectors v ON v.hash = k.hash
WHERE d.collection = :collection AND d.id >= :document AND (d.id > :document OR k.ordinal > :ordinal)
ORDER BY d.id, k.ordinal LIMIT :n;
