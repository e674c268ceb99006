-- A proxy that nobody goes out by is there no more; its row stays for what was told of it.
UPDATE ads_proxies SET deleted_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.proxy = :id AND s.ended_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM pool_items i
                  WHERE i.pool = 'ads.proxies' AND i.name = :id AND i.job IS NOT NULL)
RETURNING id;
