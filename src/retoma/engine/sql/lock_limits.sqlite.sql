-- How much room these limits have, held until the end of the transaction. Always in this order.
-- Twin: rows are locked one by one there; SQLite has one writer.
SELECT key, coalesce(by_hand, cap) - used FROM limits
WHERE key IN (SELECT value FROM json_each(:keys))
ORDER BY key;
