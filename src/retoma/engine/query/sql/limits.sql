-- name: list_limits
-- Limits by their keys, a page at a time.
SELECT key, coalesce(by_hand, cap), used, by_hand IS NOT NULL FROM limits
WHERE key > :after
ORDER BY key LIMIT :limit;
