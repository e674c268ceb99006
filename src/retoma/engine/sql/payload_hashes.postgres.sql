-- What was submitted before under these keys.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT key, payload_hash FROM jobs
WHERE kind = :kind AND key IN (SELECT json_array_elements_text(CAST(:keys AS json)));
