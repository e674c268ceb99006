-- A worker has done a mission, and its session counts it; how many that makes.
UPDATE ads_workers
SET status = CASE WHEN status = 'scraping' THEN 'ready' ELSE status END,
    session_count = session_count + 1, mission = NULL, failures = 0, updated_at = (SELECT clock())
WHERE id = :worker AND mission = :mission
RETURNING session_count;
