-- Of this evidence what no job shows; nobody attaches it before this transaction ends.
-- Twin: rows are locked there; here nobody else writes meanwhile.
SELECT e.sha256 FROM evidence e
WHERE e.sha256 IN (SELECT value FROM json_each(:shown))
  AND NOT EXISTS (SELECT 1 FROM job_evidence j WHERE j.sha256 = e.sha256)
ORDER BY e.sha256;
