-- Delete what no job shows and nobody is about to show, of one page. A place it had is left to be emptied.
DELETE FROM evidence
WHERE sha256 > :after AND sha256 <= :last AND used_at < (SELECT clock_in(:grace))
  AND NOT EXISTS (SELECT 1 FROM job_evidence s WHERE s.sha256 = evidence.sha256)
RETURNING sha256;
