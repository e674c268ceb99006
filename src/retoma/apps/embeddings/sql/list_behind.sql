-- Documents that are not embedded as their collection wants it, and that nobody is going to take up.
-- A job that is at work may have begun before what is wanted was changed.
SELECT d.id
FROM embeddings_documents d LEFT JOIN jobs j ON j.id = d.job
WHERE d.collection = :collection AND d.edition < :edition
  AND (j.id IS NULL OR j.state NOT IN ('waiting', 'parked'))
ORDER BY d.id;
