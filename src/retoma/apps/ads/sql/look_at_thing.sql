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
