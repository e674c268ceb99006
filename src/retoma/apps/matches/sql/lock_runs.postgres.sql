-- Whoever changes what runs have waits here for the others who do.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT r.id
FROM (SELECT CAST(json_array_elements_text(CAST(:runs AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
JOIN match_runs r ON r.id = n.id
ORDER BY r.id FOR NO KEY UPDATE OF r;
