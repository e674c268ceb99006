-- A worker has a mission.
UPDATE ads_workers SET status = 'scraping', mission = :mission, updated_at = (SELECT clock())
WHERE id = :worker
RETURNING name;
