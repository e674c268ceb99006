-- How the last health test of a worker went; nothing comes back where it is there no more.
UPDATE ads_workers
SET last_test_at = (SELECT clock()), last_test_ok = :ok, last_test_ms = :ms, last_test_error = :error
WHERE id = :id AND deleted_at IS NULL
RETURNING id;
