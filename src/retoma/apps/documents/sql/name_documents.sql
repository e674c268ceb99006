-- The jobs of an execution, each to its document: its payload says of which it is.
UPDATE documents SET execution = :execution, job = j.id
FROM jobs j, batches b
WHERE b.id = :execution AND j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id
  AND documents.id = CAST(j.payload ->> 'document' AS bigint);
