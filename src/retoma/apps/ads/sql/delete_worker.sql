-- A worker that has no session is there no more; its row stays for what was told of it.
UPDATE ads_workers SET deleted_at = (SELECT clock()), active = FALSE, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = :id AND s.ended_at IS NULL)
RETURNING id;
