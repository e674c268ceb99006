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
