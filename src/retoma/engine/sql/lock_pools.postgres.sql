-- These pools, for whoever counts what is on in them: nobody else does so before the transaction ends.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT name FROM pools
WHERE name = ANY(ARRAY(SELECT json_array_elements_text(CAST(:pools AS json))))
ORDER BY name FOR NO KEY UPDATE;
