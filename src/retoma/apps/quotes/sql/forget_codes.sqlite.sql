-- These quotes go without their codes: others of their lote have the same.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
UPDATE quotes SET code = NULL WHERE id IN (SELECT value FROM json_each(:quotes));
