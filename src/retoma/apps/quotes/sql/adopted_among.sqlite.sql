-- Which of these rows of another table were taken over before, and which of these numbers are taken here.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
SELECT was ->> 'adopted_id', CAST(NULL AS bigint) FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source
  AND was ->> 'adopted_id' IN (SELECT CAST(value AS text) FROM json_each(:ids))
UNION ALL
SELECT NULL, id FROM quotes WHERE id IN (SELECT CAST(value AS integer) FROM json_each(:ids));
