-- The job of a document.
SELECT d.job, c.name FROM embeddings_documents d
JOIN embeddings_collections c ON c.id = d.collection WHERE d.id = :document;
