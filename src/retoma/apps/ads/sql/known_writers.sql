-- By what a writer is known already.
SELECT id, url FROM ads_writers WHERE deleted_at IS NULL;
