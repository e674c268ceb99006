-- The jobs of a batch, each to its document. They lie between its first and last id.
UPDATE embeddings_documents SET job = j.id
FROM jobs j
WHERE j.batch = :batch AND embeddings_documents.id = CAST(j.payload ->> 'document' AS bigint)
  AND j.id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :batch);
