-- name: first_documents
-- Some documents of a collection, for whoever deletes all of them.
SELECT id FROM embeddings_documents WHERE collection = :collection ORDER BY id LIMIT :n;

-- name: job_of_document
-- The job of a document.
SELECT d.job, c.name FROM embeddings_documents d
JOIN embeddings_collections c ON c.id = d.collection WHERE d.id = :document;

-- name: list_documents
-- Documents of a collection in the order they came, a page at a time.
SELECT d.id, c.name AS collection, d.name, d.sha256, length(d.text), d.chunks, d.edition, d.edition = c.edition,
       d.job, j.state, j.code, d.created_by, d.created_at, d.embedded_at, d.metadata
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
LEFT JOIN jobs j ON j.id = d.job
WHERE d.collection = :collection AND d.id > :after
  AND (CAST(:embedded AS integer) IS NULL OR (d.edition = c.edition) = (CAST(:embedded AS integer) = 1))
ORDER BY d.id LIMIT :n;

-- name: name_jobs
-- The jobs of a batch, each to its document. They lie between its first and last id.
UPDATE embeddings_documents SET job = j.id
FROM jobs j
WHERE j.batch = :batch AND embeddings_documents.id = CAST(j.payload ->> 'document' AS bigint)
  AND j.id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :batch);

-- name: remove_document
-- Delete a document and its chunks; vectors that no chunk needs any more are deleted later.
DELETE FROM embeddings_documents WHERE id = :document;

UPDATE embeddings_vectors SET orphan_at = (SELECT clock())
WHERE hash IN (SELECT k.hash FROM embeddings_chunks k WHERE k.document = :document)
  AND NOT EXISTS (SELECT 1 FROM embeddings_chunks o
                  WHERE o.hash = embeddings_vectors.hash AND o.document <> :document);

DELETE FROM embeddings_words
WHERE rowid BETWEEN CAST(:document AS bigint) * 32768 AND CAST(:document AS bigint) * 32768 + 32767;

DELETE FROM embeddings_metadata WHERE document = :document;

DELETE FROM embeddings_chunks WHERE document = :document;

-- name: show_document
-- One document, with where its job is.
SELECT d.id, c.name AS collection, d.name, d.sha256, length(d.text), d.chunks, d.edition, d.edition = c.edition,
       d.job, j.state, j.code, d.created_by, d.created_at, d.embedded_at, d.metadata
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
LEFT JOIN jobs j ON j.id = d.job
WHERE d.id = :document;
