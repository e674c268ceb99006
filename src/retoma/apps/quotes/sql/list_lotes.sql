-- Batches of quotes, the newest first.
SELECT id FROM batches
WHERE kind = 'quotes.quote' AND (CAST(:before AS bigint) IS NULL OR id < :before)
ORDER BY id DESC LIMIT :n;
