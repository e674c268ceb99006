-- The evidence these jobs show.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
SELECT DISTINCT sha256 FROM job_evidence WHERE job IN (SELECT value FROM json_each(:jobs));
