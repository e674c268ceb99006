-- Things of a pool by their names: how each is switched, and why. Held until the transaction ends.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT id, name, state, reason FROM pool_items
WHERE pool = :pool AND name = ANY(ARRAY(SELECT json_array_elements_text(CAST(:names AS json))))
ORDER BY id FOR UPDATE;
