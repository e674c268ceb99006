-- These quotes go without their codes: others of their lote have the same.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
UPDATE quotes SET code = NULL
WHERE id IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:quotes AS json)));
