-- Delete bytes that no job shows, looked at once more now that they are held.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
DELETE FROM evidence
WHERE sha256 IN (SELECT value FROM json_each(:shown))
  AND NOT EXISTS (SELECT 1 FROM job_evidence j WHERE j.sha256 = evidence.sha256);
