-- Which of these rows of another table were taken over before, and which of these numbers are taken here.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT was ->> 'adopted_id', CAST(NULL AS bigint) FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source
  AND was ->> 'adopted_id' IN (SELECT value FROM json_array_elements_text(CAST(:ids AS json)))
UNION ALL
SELECT NULL, id FROM quotes
WHERE id IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:ids AS json)));
