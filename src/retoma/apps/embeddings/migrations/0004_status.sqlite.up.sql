-- The document asks its queue by status: as the view queue_jobs says it, word for word.
CREATE INDEX embeddings_jobs_status ON jobs (
    (CASE state WHEN 'running' THEN 'processing' WHEN 'done' THEN 'completed'
          WHEN 'skipped' THEN 'completed' WHEN 'dead' THEN 'failed'
          WHEN 'canceled' THEN 'failed' ELSE 'pending' END), id)
WHERE kind = 'embeddings.document';
