-- Delete batches and their ledgers; the ledger of all batches together keeps its totals.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
DELETE FROM counts WHERE batch IN (SELECT value FROM json_each(:batches));

DELETE FROM batch_pace WHERE batch IN (SELECT value FROM json_each(:batches));

DELETE FROM batches WHERE id IN (SELECT value FROM json_each(:batches))
RETURNING id;
