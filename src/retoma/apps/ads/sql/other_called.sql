-- Whether another proxy has this name.
SELECT 1 FROM ads_proxies WHERE name = :name AND id <> :id AND deleted_at IS NULL;
