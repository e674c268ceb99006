-- Close what is open of batches that have finished once more.
UPDATE alerts SET closed_at = (SELECT clock())
WHERE rule = :rule AND closed_at IS NULL
  AND subject IN (SELECT o.key FROM json_each(:batches) o);
