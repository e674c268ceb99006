-- name: drop_session
-- A session that was never asked for gives way to another.
UPDATE ads_sessions SET ended_at = (SELECT clock())
WHERE id = :session AND ended_at IS NULL AND proxy IS NULL;

-- name: held_proxy
-- The proxy that the job of a session holds.
SELECT name FROM pool_items WHERE pool = 'ads.proxies' AND job = :job;

-- name: look_at_thing
-- One worker, proxy or writer: its name, whether it is active, where it leaves ads, whether it is used.
SELECT w.name, w.active, w.storage_domain,
       EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = w.id AND s.ended_at IS NULL)
FROM ads_workers w
WHERE :sort = 'workers' AND w.id = :id AND w.deleted_at IS NULL
UNION ALL
SELECT p.name, coalesce(i.state = 'on', FALSE), NULL,
       i.job IS NOT NULL OR EXISTS (
           SELECT 1 FROM ads_sessions s WHERE s.proxy = p.id AND s.ended_at IS NULL)
FROM ads_proxies p LEFT JOIN pool_items i ON i.pool = 'ads.proxies' AND i.name = p.id
WHERE :sort = 'proxies' AND p.id = :id AND p.deleted_at IS NULL
UNION ALL
SELECT w.name, w.active, NULL,
       EXISTS (SELECT 1 FROM jobs j JOIN ads_missions m ON m.storage = j.id
               WHERE j.kind = 'ads.storage' AND j.state IN ('waiting', 'running', 'parked')
                 AND m.writer_id = w.id)
FROM ads_writers w
WHERE :sort = 'writers' AND w.id = :id AND w.deleted_at IS NULL;

-- name: other_called
-- Whether another proxy has this name.
SELECT 1 FROM ads_proxies WHERE name = :name AND id <> :id AND deleted_at IS NULL;

-- name: reset_worker
-- A worker in error is idle at once: it rests no longer, and its failures are forgotten.
UPDATE ads_workers SET status = 'idle', failures = 0, rests_until = NULL, updated_at = (SELECT clock())
WHERE id = :worker AND deleted_at IS NULL AND status = 'error'
RETURNING id;

-- name: session_by_proxy
-- Whose session goes out by a proxy.
SELECT worker FROM ads_sessions WHERE proxy = :proxy AND ended_at IS NULL;

-- name: switch_worker
-- Whether a worker is given anything to do; nothing comes back where that was so already.
-- One whose finds nobody could fetch is not activated, whoever takes its storage_domain away meanwhile.
UPDATE ads_workers SET active = :active, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL AND active <> :active
  AND (storage_domain IS NOT NULL OR :active = FALSE)
RETURNING id;

-- name: switch_writer
-- Whether a writer is given anything to do; nothing comes back where that was so already.
UPDATE ads_writers SET active = :active, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL AND active <> :active
RETURNING id;

-- name: change_worker
-- Change what a worker is. Not its address while it has a session: that would end unseen.
-- An active one keeps a storage_domain.
UPDATE ads_workers
SET name = coalesce(:name, name), url = coalesce(:url, url),
    storage_domain = CASE WHEN :domain_told = 1 THEN :storage_domain ELSE storage_domain END,
    updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND (url = coalesce(:url, url)
       OR NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = :id AND s.ended_at IS NULL))
  AND (:domain_told = 0 OR CAST(:storage_domain AS text) IS NOT NULL OR active = FALSE)
RETURNING id;

-- name: change_proxy
-- Change what a proxy is. Not its address while a session goes out by it; not to another's name.
UPDATE ads_proxies
SET name = coalesce(:name, name), host = coalesce(:host, host),
    port = CASE WHEN :port_told = 1 THEN CAST(:port AS integer) ELSE port END,
    username = CASE WHEN :username_told = 1 THEN :username ELSE username END,
    vendor = coalesce(:vendor, vendor)
WHERE id = :id AND deleted_at IS NULL
  AND (host = coalesce(:host, host)
           AND (:port_told = 0 OR port IS NOT DISTINCT FROM CAST(:port AS integer))
       OR NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.proxy = :id AND s.ended_at IS NULL))
  AND NOT EXISTS (SELECT 1 FROM ads_proxies o
                  WHERE o.name = :name AND o.id <> :id AND o.deleted_at IS NULL)
RETURNING id;

-- name: change_writer
-- Change what a writer is. Not its address while it stores ads: it would be asked after elsewhere.
UPDATE ads_writers
SET name = coalesce(:name, name), url = coalesce(:url, url), updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND (url = coalesce(:url, url)
       OR NOT EXISTS (SELECT 1 FROM jobs j JOIN ads_missions m ON m.storage = j.id
                      WHERE j.kind = 'ads.storage' AND j.state IN ('waiting', 'running', 'parked')
                        AND m.writer_id = :id))
RETURNING id;

-- name: delete_worker
-- A worker that has no session is there no more; its row stays for what was told of it.
UPDATE ads_workers SET deleted_at = (SELECT clock()), active = FALSE, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = :id AND s.ended_at IS NULL)
RETURNING id;

-- name: delete_proxy
-- A proxy that nobody goes out by is there no more; its row stays for what was told of it.
UPDATE ads_proxies SET deleted_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.proxy = :id AND s.ended_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM pool_items i
                  WHERE i.pool = 'ads.proxies' AND i.name = :id AND i.job IS NOT NULL)
RETURNING id;

-- name: delete_writer
-- A writer that stores nothing is there no more; its row stays for what was told of it.
UPDATE ads_writers SET deleted_at = (SELECT clock()), active = FALSE, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM jobs j JOIN ads_missions m ON m.storage = j.id
                  WHERE j.kind = 'ads.storage' AND j.state IN ('waiting', 'running', 'parked')
                    AND m.writer_id = :id)
RETURNING id;
