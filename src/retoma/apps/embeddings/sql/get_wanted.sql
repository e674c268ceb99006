-- What a story is told of its document, and how its collection wants it.
SELECT d.id, d.name, d.text, d.edition, c.edition, c.model, c.version, c.dims, c.size, c.overlap
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
WHERE d.id = :document;
