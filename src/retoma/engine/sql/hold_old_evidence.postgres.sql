-- Of this evidence what no job shows; nobody attaches it before this transaction ends.
-- Twin: rows are locked here; there nobody else writes meanwhile.
SELECT e.sha256 FROM evidence e
WHERE e.sha256 IN (SELECT json_array_elements_text(CAST(:shown AS json)))
  AND NOT EXISTS (SELECT FROM job_evidence j WHERE j.sha256 = e.sha256)
ORDER BY e.sha256 FOR UPDATE OF e SKIP LOCKED;
