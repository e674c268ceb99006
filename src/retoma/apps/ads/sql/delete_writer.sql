-- A writer that stores nothing is there no more; its row stays for what was told of it.
UPDATE ads_writers SET deleted_at = (SELECT clock()), active = FALSE, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM jobs j JOIN ads_missions m ON m.storage = j.id
                  WHERE j.kind = 'ads.storage' AND j.state IN ('waiting', 'running', 'parked')
                    AND m.writer_id = :id)
RETURNING id;
