-- name: add_proxy
-- A proxy for sessions to go out by; nothing comes back where another has its name.
INSERT INTO ads_proxies (id, name, host, port, username, vendor, created_at)
VALUES (:id, :name, :host, :port, :username, :vendor, (SELECT clock()))
ON CONFLICT DO NOTHING
RETURNING id;

-- name: add_worker
-- A worker that may be given sessions.
INSERT INTO ads_workers (id, name, url, storage_domain, active, created_at, updated_at)
VALUES (:id, :name, :url, :storage_domain, :active, (SELECT clock()), (SELECT clock()));

-- name: add_writer
-- A writer that may be given ads.
INSERT INTO ads_writers (id, name, url, active, created_at, updated_at)
VALUES (:id, :name, :url, :active, (SELECT clock()), (SELECT clock()));

-- name: get_proxy
-- What a proxy is, but for its password.
SELECT id, name, host, port, username FROM ads_proxies WHERE id = :proxy;

-- name: get_worker
-- What a worker is, but for its key.
SELECT id, name, url, storage_domain FROM ads_workers WHERE id = :worker;

-- name: get_writer
-- What a writer is, but for its key.
SELECT id, name, url FROM ads_writers WHERE id = :writer;

-- name: list_proxies
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

-- name: list_workers
-- A page of workers by their ids, as the document shows them; what becomes of the session each has.
SELECT w.id, w.name, w.url, w.storage_domain, w.status, w.session_count, w.mission, s.proxy, w.active,
       w.last_test_at, w.last_test_ok, w.last_test_ms, w.last_test_error, w.rests_until, s.id, j.id,
       j.state, j.note, s.silent_since
FROM ads_workers w
LEFT JOIN ads_sessions s ON s.worker = w.id AND s.ended_at IS NULL
LEFT JOIN jobs j ON j.id = s.job
WHERE w.deleted_at IS NULL AND w.id > :after
  AND (CAST(:id AS text) IS NULL OR w.id = :id)
ORDER BY w.id LIMIT :n;

-- name: list_writers
-- A page of writers by their ids, as the document shows them.
SELECT w.id, w.name, w.url, w.active, w.last_test_at, w.last_test_ok, w.last_test_ms,
       w.last_test_error, b.since, b.reason
FROM ads_writers w LEFT JOIN breakers b ON b.name = 'ads.writer.' || w.id AND b.state <> 'closed'
WHERE w.deleted_at IS NULL AND w.id > :after
  AND (CAST(:id AS text) IS NULL OR w.id = :id)
ORDER BY w.id LIMIT :n;

-- name: move_worker
-- What a worker is doing, as its session tells.
UPDATE ads_workers SET status = :status, updated_at = (SELECT clock()) WHERE id = :worker;
