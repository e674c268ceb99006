-- Whoever changes what runs have waits here for the others who do.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT id FROM match_runs WHERE id IN (SELECT value FROM json_each(:runs));
