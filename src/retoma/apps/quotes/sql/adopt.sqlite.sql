-- name: adopted_among
-- Which of these rows of another table were taken over before, and which of these numbers are taken here.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
SELECT was ->> 'adopted_id', CAST(NULL AS bigint) FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source
  AND was ->> 'adopted_id' IN (SELECT CAST(value AS text) FROM json_each(:ids))
UNION ALL
SELECT NULL, id FROM quotes WHERE id IN (SELECT CAST(value AS integer) FROM json_each(:ids));

-- name: adopted_open
-- Quotes that were taken over while they waited or were at work, and have no job yet; those of one lote together.
-- Twin: their rows are locked there, so that of two who submit them the second finds none; SQLite has one writer.
SELECT id, was ->> 'batch_request_id', code FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source AND job IS NULL
  AND was ->> 'status' IN ('PENDING', 'PROCESSING')
ORDER BY 2, id LIMIT :n;

-- name: adopt_quotes
-- Rows of another table become quotes, by their own numbers where those are free; none becomes two.
-- Twin: sets arrive by json_to_recordset there, by json_each here; a number is given by the sequence there.
INSERT INTO quotes (id, code, kind, description, created_by, created_at, was)
SELECT value ->> 'id', value ->> 'code', value ->> 'kind', value ->> 'description', :actor,
       coalesce(value ->> 'created_at', (SELECT clock())), value -> 'was'
FROM json_each(:rows) WHERE true ORDER BY key
ON CONFLICT DO NOTHING
RETURNING id, was ->> 'adopted_id';

-- name: forget_codes
-- These quotes go without their codes: others of their lote have the same.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
UPDATE quotes SET code = NULL WHERE id IN (SELECT value FROM json_each(:quotes));

-- name: pass_numbers
-- Numbers up to this one are not given to new quotes.
-- Twin: the sequence is moved there; SQLite never gives a number below one that was there.
SELECT :last;
