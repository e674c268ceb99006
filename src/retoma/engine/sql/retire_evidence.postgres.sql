-- Delete bytes that no job shows, looked at once more now that they are held.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
DELETE FROM evidence e
WHERE e.sha256 IN (SELECT json_array_elements_text(CAST(:shown AS json)))
  AND NOT EXISTS (SELECT FROM job_evidence j WHERE j.sha256 = e.sha256);
