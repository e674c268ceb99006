-- The newest id: jobs of this transaction are those above it.
SELECT coalesce(max(id), 0) FROM jobs;
