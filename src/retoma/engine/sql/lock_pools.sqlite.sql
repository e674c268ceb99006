-- These pools, for whoever counts what is on in them: nobody else does so before the transaction ends.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT name FROM pools WHERE name IN (SELECT value FROM json_each(:pools)) ORDER BY name;
