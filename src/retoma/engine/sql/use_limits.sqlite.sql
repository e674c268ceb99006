-- Count more running jobs under their limits, or fewer; the room that each has left.
-- Twin: rows are locked one by one there, always in the same order. SQLite has one writer; what was
-- sent stands in a temp table, or all limits would be read to find them.
CREATE TEMP TABLE IF NOT EXISTS counted (key text PRIMARY KEY, n integer);

DELETE FROM temp.counted;

INSERT INTO temp.counted SELECT value ->> 'key', value ->> 'n' FROM json_each(:rows);

UPDATE limits SET
    used = max(used + (SELECT c.n FROM temp.counted c WHERE c.key = limits.key), 0)
WHERE key IN (SELECT c.key FROM temp.counted c)
RETURNING key, coalesce(by_hand, cap) - used;
