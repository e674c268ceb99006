-- The job of a mission that is parked, where a person can let it go on.
SELECT j.id FROM ads_missions m JOIN jobs j ON j.id IN (m.extraction, m.storage)
WHERE m.id = :mission AND m.deleted_at IS NULL AND j.state = 'parked'
  AND j.reason IS DISTINCT FROM 'unknown_remote';
