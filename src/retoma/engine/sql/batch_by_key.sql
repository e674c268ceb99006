-- The batch that has a key.
SELECT id FROM batches WHERE key = :key;
