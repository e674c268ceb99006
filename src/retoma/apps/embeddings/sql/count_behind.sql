-- In which states the jobs of those documents are that are not embedded yet.
SELECT coalesce(j.state, 'none'), count(*)
FROM embeddings_documents d LEFT JOIN jobs j ON j.id = d.job
WHERE d.collection = :collection AND d.edition < :edition
GROUP BY j.state;
