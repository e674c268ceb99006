-- Change what a worker is. Not its address while it has a session: that would end unseen.
-- An active one keeps a storage_domain.
UPDATE ads_workers
SET name = coalesce(:name, name), url = coalesce(:url, url),
    storage_domain = CASE WHEN :domain_told = 1 THEN :storage_domain ELSE storage_domain END,
    updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL
  AND (url = coalesce(:url, url)
       OR NOT EXISTS (SELECT 1 FROM ads_sessions s WHERE s.worker = :id AND s.ended_at IS NULL))
  AND (:domain_told = 0 OR CAST(:storage_domain AS text) IS NOT NULL OR active = FALSE)
RETURNING id;
