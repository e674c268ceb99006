-- Drop what no document names and nobody has wanted for a while, a few at a time, pieces and all.
DELETE FROM document_contents
WHERE at < (SELECT clock_in(:grace)) AND sha256 IN (
    SELECT c.sha256 FROM document_contents c
    WHERE c.at < (SELECT clock_in(:grace))
      AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.sha256 = c.sha256)
    ORDER BY c.sha256 LIMIT :bite)
RETURNING sha256;
