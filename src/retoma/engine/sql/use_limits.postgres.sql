-- Count more running jobs under their limits, or fewer; the room that each has left.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
WITH sent AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, n integer)
), held AS MATERIALIZED (
    SELECT key FROM limits WHERE key = ANY(ARRAY(SELECT key FROM sent)) ORDER BY key FOR UPDATE
)
UPDATE limits l SET used = greatest(l.used + s.n, 0)
FROM held h JOIN sent s ON s.key = h.key
WHERE l.key = h.key
RETURNING l.key, coalesce(l.by_hand, l.cap) - l.used;
