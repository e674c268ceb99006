-- The jobs of a lote, each to its quote: its payload is the number of that. They lie between its first and last id.
UPDATE quotes SET lote = :lote, job = j.id
FROM jobs j
WHERE j.batch = :lote AND quotes.id = CAST(CAST(j.payload AS text) AS bigint)
  AND j.id >= (SELECT first_job FROM batches WHERE id = :lote)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :lote);
