-- Every proxy, as the document shows it; its password is nobody's to see.
SELECT id, name, host, port, username, active, in_use_by_worker_id, fail_count, last_test_ok
FROM proxies ORDER BY id;
