-- Whether a runner is alive that classifies documents.
SELECT 1 FROM runners
WHERE state = 'alive' AND lease_until >= (SELECT clock())
  AND CAST(knows AS text) LIKE '%"documents.document@1"%';
