-- Batches, newest first, a page at a time.
SELECT id, name, kind, created_at FROM batches
WHERE CAST(:before AS bigint) IS NULL OR id < :before
ORDER BY id DESC LIMIT :limit;
