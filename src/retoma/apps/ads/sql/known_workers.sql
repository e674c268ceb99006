-- By what a worker is known already: two rows for one would give it two commands at once.
SELECT id, url FROM ads_workers WHERE deleted_at IS NULL;
