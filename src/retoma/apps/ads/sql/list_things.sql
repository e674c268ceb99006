-- Every worker, proxy and writer there is, or those of one sort.
SELECT sort, id FROM (
    SELECT 'workers' AS sort, id FROM ads_workers WHERE deleted_at IS NULL
    UNION ALL SELECT 'proxies', id FROM ads_proxies WHERE deleted_at IS NULL
    UNION ALL SELECT 'writers', id FROM ads_writers WHERE deleted_at IS NULL
) things
WHERE CAST(:sort AS text) IS NULL OR sort = :sort
ORDER BY sort, id;
