-- Change what a writer is. Not its address while it stores ads: it would be asked after elsewhere.
UPDATE ads_writers
SET name = coalesce(:name, name), url = coalesce(:url, url), updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND (url = coalesce(:url, url)
       OR NOT EXISTS (SELECT 1 FROM jobs j JOIN ads_missions m ON m.storage = j.id
                      WHERE j.kind = 'ads.storage' AND j.state IN ('waiting', 'running', 'parked')
                        AND m.writer_id = :id))
RETURNING id;
