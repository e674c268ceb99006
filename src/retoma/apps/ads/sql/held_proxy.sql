-- The proxy that the job of a session holds.
SELECT name FROM pool_items WHERE pool = 'ads.proxies' AND job = :job;
