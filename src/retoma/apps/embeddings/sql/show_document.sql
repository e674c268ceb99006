-- One document, with where its job is.
SELECT d.id, c.name, d.name, d.sha256, length(d.text), d.chunks, d.edition, d.edition = c.edition,
       d.job, j.state, j.code, d.created_by, d.created_at, d.embedded_at, d.metadata
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
LEFT JOIN jobs j ON j.id = d.job
WHERE d.id = :document;
