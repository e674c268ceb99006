-- Things of a pool by their names: how each is switched, and why. Held until the transaction ends.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT id, name, state, reason FROM pool_items
WHERE pool = :pool AND name IN (SELECT value FROM json_each(:names))
ORDER BY id;
