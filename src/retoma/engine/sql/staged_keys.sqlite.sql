-- Which of these keys stand in submissions that are still coming in.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
SELECT key, hash, filling FROM filling_jobs
WHERE kind = :kind AND key IN (SELECT value FROM json_each(:keys));
