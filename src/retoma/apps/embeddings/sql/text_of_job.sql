-- What the document of a job is, for code that has claimed it.
SELECT d.id, c.name, d.name, d.text
FROM jobs j JOIN embeddings_documents d ON d.id = CAST(j.payload ->> 'document' AS bigint)
JOIN embeddings_collections c ON c.id = d.collection
WHERE j.id = :job;
