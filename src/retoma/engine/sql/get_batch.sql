-- One batch.
SELECT id, name, kind, created_at FROM batches WHERE id = :batch;
