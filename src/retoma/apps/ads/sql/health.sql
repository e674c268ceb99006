-- name: list_things
-- Every worker, proxy and writer there is, or those of one sort.
SELECT sort, id FROM (
    SELECT 'workers' AS sort, id FROM ads_workers WHERE deleted_at IS NULL
    UNION ALL SELECT 'proxies', id FROM ads_proxies WHERE deleted_at IS NULL
    UNION ALL SELECT 'writers', id FROM ads_writers WHERE deleted_at IS NULL
) things
WHERE CAST(:sort AS text) IS NULL OR sort = :sort
ORDER BY sort, id;

-- name: keep_worker_test
-- How the last health test of a worker went; nothing comes back where it is there no more.
UPDATE ads_workers
SET last_test_at = (SELECT clock()), last_test_ok = :ok, last_test_ms = :ms, last_test_error = :error
WHERE id = :id AND deleted_at IS NULL
RETURNING id;

-- name: keep_proxy_test
-- How the last health test of a proxy went; nothing comes back where it is there no more.
UPDATE ads_proxies
SET last_test_at = (SELECT clock()), last_test_ok = :ok, last_test_ms = :ms, last_test_error = :error
WHERE id = :id AND deleted_at IS NULL
RETURNING id;

-- name: keep_writer_test
-- How the last health test of a writer went; nothing comes back where it is there no more.
UPDATE ads_writers
SET last_test_at = (SELECT clock()), last_test_ok = :ok, last_test_ms = :ms, last_test_error = :error
WHERE id = :id AND deleted_at IS NULL
RETURNING id;
