-- How much room these limits have, held until the end of the transaction. Always in this order.
-- Twin: rows are locked one by one here; SQLite has one writer.
SELECT key, coalesce(by_hand, cap) - used FROM limits
WHERE key = ANY(ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))))
ORDER BY key FOR UPDATE;
