-- What a writer is, but for its key.
SELECT id, name, url FROM ads_writers WHERE id = :writer;
