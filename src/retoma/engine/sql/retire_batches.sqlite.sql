-- Delete batches and their ledgers; the ledger of all batches together keeps its totals.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
DELETE FROM counts WHERE batch IN (SELECT value FROM json_each(:batches));

DELETE FROM batch_pace WHERE batch IN (SELECT value FROM json_each(:batches));

DELETE FROM costs
WHERE scope = 'batch' AND name IN (SELECT CAST(value AS text) FROM json_each(:batches));

DELETE FROM budgets
WHERE scope = 'batch' AND name IN (SELECT CAST(value AS text) FROM json_each(:batches));

DELETE FROM batches WHERE id IN (SELECT value FROM json_each(:batches))
RETURNING id;
