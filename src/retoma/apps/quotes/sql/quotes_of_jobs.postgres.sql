-- Which quotes these jobs are of.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT job, id FROM quotes
WHERE job IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:jobs AS json)));
