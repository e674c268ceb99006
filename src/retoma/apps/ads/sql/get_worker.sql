-- What a worker is, but for its key.
SELECT id, name, url, storage_domain FROM ads_workers WHERE id = :worker;
