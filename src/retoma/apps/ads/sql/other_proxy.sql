-- Another proxy that is on, free, and has not failed of late.
SELECT 1 FROM pool_items
WHERE pool = 'ads.proxies' AND state = 'on' AND job IS NULL AND failures = 0 AND name <> :proxy
LIMIT 1;
