-- What was submitted before under these keys.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
SELECT key, payload_hash FROM jobs
WHERE kind = :kind AND key IN (SELECT value FROM json_each(:keys));
