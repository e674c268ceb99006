-- Documents of a collection in the order they came, a page at a time.
SELECT d.id, c.name, d.name, d.sha256, length(d.text), d.chunks, d.edition, d.edition = c.edition,
       d.job, j.state, j.code, d.created_by, d.created_at, d.embedded_at, d.metadata
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
LEFT JOIN jobs j ON j.id = d.job
WHERE d.collection = :collection AND d.id > :after
  AND (CAST(:embedded AS integer) IS NULL OR (d.edition = c.edition) = (CAST(:embedded AS integer) = 1))
ORDER BY d.id LIMIT :n;
