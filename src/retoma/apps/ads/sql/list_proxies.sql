-- A page of proxies by their ids, as the document shows them; their passwords are nobody's to see.
SELECT p.id, p.name, p.host, p.port, p.username, p.vendor, coalesce(i.state = 'on', FALSE), s.worker,
       coalesce(i.failures, 0), i.reason, i.used_at, p.last_test_at, p.last_test_ok, p.last_test_ms,
       p.last_test_error
FROM ads_proxies p
LEFT JOIN pool_items i ON i.pool = 'ads.proxies' AND i.name = p.id
LEFT JOIN ads_sessions s ON s.proxy = p.id AND s.ended_at IS NULL
WHERE p.deleted_at IS NULL AND p.id > :after
  AND (CAST(:id AS text) IS NULL OR p.id = :id)
ORDER BY p.id LIMIT :n;
