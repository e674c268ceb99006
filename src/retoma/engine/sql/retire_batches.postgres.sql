-- Delete batches and their ledgers; the ledger of all batches together keeps its totals.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
DELETE FROM counts WHERE batch IN (
    SELECT CAST(batch AS bigint) FROM json_array_elements_text(CAST(:batches AS json)) AS b(batch));

DELETE FROM batch_pace WHERE batch IN (
    SELECT CAST(batch AS bigint) FROM json_array_elements_text(CAST(:batches AS json)) AS b(batch));

DELETE FROM costs WHERE scope = 'batch' AND name IN (
    SELECT json_array_elements_text(CAST(:batches AS json)));

DELETE FROM budgets WHERE scope = 'batch' AND name IN (
    SELECT json_array_elements_text(CAST(:batches AS json)));

DELETE FROM batches WHERE id IN (
    SELECT CAST(batch AS bigint) FROM json_array_elements_text(CAST(:batches AS json)) AS b(batch))
RETURNING id;
