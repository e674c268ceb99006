-- name: adopted_among
-- Which of these rows of another table were taken over before, and which of these numbers are taken here.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT was ->> 'adopted_id', CAST(NULL AS bigint) FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source
  AND was ->> 'adopted_id' IN (SELECT value FROM json_array_elements_text(CAST(:ids AS json)))
UNION ALL
SELECT NULL, id FROM quotes
WHERE id IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:ids AS json)));

-- name: adopted_open
-- Quotes that were taken over while they waited or were at work, and have no job yet; those of one lote together.
-- Twin: their rows are locked here, so that of two who submit them the second finds none; SQLite has one writer.
SELECT id, was ->> 'batch_request_id', code FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source AND job IS NULL
  AND was ->> 'status' IN ('PENDING', 'PROCESSING')
ORDER BY 2, id LIMIT :n FOR UPDATE;

-- name: adopt_quotes
-- Rows of another table become quotes, by their own numbers where those are free; none becomes two.
-- Twin: sets arrive by json_to_recordset here, by json_each there; a number is given by the sequence here.
INSERT INTO quotes (id, code, kind, description, created_by, created_at, was)
SELECT coalesce(t.id, nextval(pg_get_serial_sequence('quotes', 'id'))), t.code, t.kind, t.description,
       :actor, coalesce(t.created_at, (SELECT clock())), t.was
FROM json_to_recordset(CAST(:rows AS json)) AS t(
    id bigint, code text, kind text, description text, created_at timestamptz, was json)
ON CONFLICT DO NOTHING
RETURNING id, was ->> 'adopted_id';

-- name: forget_codes
-- These quotes go without their codes: others of their lote have the same.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
UPDATE quotes SET code = NULL
WHERE id IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:quotes AS json)));

-- name: pass_numbers
-- Numbers up to this one are not given to new quotes.
-- Twin: the sequence is moved here; SQLite never gives a number below one that was there.
SELECT setval(pg_get_serial_sequence('quotes', 'id'),
              greatest(CAST(:last AS bigint), (SELECT coalesce(max(id), 1) FROM quotes)));
