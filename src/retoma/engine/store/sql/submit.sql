-- name: batch_by_key
-- The batch that has a key.
SELECT id FROM batches WHERE key = :key;

-- name: last_job
-- The newest id: jobs of this transaction are those above it.
SELECT coalesce(max(id), 0) FROM jobs;

-- name: open_batch
-- A new batch; zero rows: its key is there already.
INSERT INTO batches (name, key, kind, created_at) VALUES (:name, :key, :kind, (SELECT clock()))
ON CONFLICT (key) DO NOTHING
RETURNING id;

-- name: span_batch
-- Where in the jobs a batch lies: its own are between these two, among others' now and then.
UPDATE batches SET first_job = coalesce(first_job, :first), last_job = :last WHERE id = :batch;
