-- name: assign_mission
-- A mission has a worker (§6.4); nothing comes back where it is no longer to be done.
UPDATE ads_missions
SET status = 'running', checkpoint = 'extracao', worker_id = :worker, session = :session,
    proxy_used = :proxy, worker_job_id = NULL, started_at = coalesce(started_at, (SELECT clock()))
WHERE id = :mission AND extraction = :job AND status IN ('queued', 'running')
RETURNING id;

-- name: cancel_asked
-- Whether somebody has asked that the extraction of a mission be canceled.
SELECT 1 FROM ads_missions m JOIN jobs j ON j.id = m.extraction
WHERE m.id = :mission AND (m.canceled_by IS NOT NULL OR j.cancel_at IS NOT NULL);

-- name: count_parks
-- How often a person let a mission go on that was parked.
SELECT parks FROM ads_missions WHERE id = :mission;

-- name: count_served
-- How many missions a session has begun.
UPDATE ads_sessions SET served = served + 1 WHERE id = :session;

-- name: free_worker
-- A worker has done a mission, and its session counts it; how many that makes.
UPDATE ads_workers
SET status = CASE WHEN status = 'scraping' THEN 'ready' ELSE status END,
    session_count = session_count + 1, mission = NULL, failures = 0, updated_at = (SELECT clock())
WHERE id = :worker AND mission = :mission
RETURNING session_count;

-- name: keep_scrape
-- What a scrape gave; from here on the mission is the writer's (§2.5.2), or done where there was nothing.
UPDATE ads_missions
SET error_code = NULL, error_message = NULL, ads_count = :ads, worker_data_url = :url, scraped_at = (SELECT clock()),
    status = CASE WHEN :empty = 1 THEN 'completed' ELSE status END,
    checkpoint = CASE WHEN :empty = 1 THEN 'finalizado' ELSE 'armazenamento' END,
    finished_at = CASE WHEN :empty = 1 THEN (SELECT clock()) END
WHERE id = :mission AND extraction = :job AND status = 'running'
RETURNING queued_at, scraped_at;

-- name: leave_session
-- A mission is done with a session: what becomes of that is no longer its story.
UPDATE ads_served SET left_at = (SELECT clock()) WHERE session = :session AND mission = :mission;

-- name: name_scrape
-- Under what id a worker scrapes for a mission; nothing comes back where that is known.
UPDATE ads_missions SET worker_job_id = :job_id
WHERE id = :mission AND extraction = :job AND worker_job_id IS DISTINCT FROM :job_id
RETURNING id;

-- name: scrape_job
-- Under which id a worker has the scrape of a mission.
SELECT worker_job_id FROM ads_missions WHERE id = :mission;

-- name: forget_scrape
-- Forget a scrape that was seen to be over.
DELETE FROM ads_left_scrapes WHERE worker = :worker AND job_id = :job_id;

-- name: leave_scrape
-- Remember a scrape that nobody saw end, by its worker.
INSERT INTO ads_left_scrapes (worker, job_id) VALUES (:worker, :job_id) ON CONFLICT DO NOTHING;

-- name: left_scrapes
-- Scrapes of a worker that nobody saw end, oldest name first.
SELECT job_id FROM ads_left_scrapes WHERE worker = :worker ORDER BY job_id;

-- name: serve_mission
-- A session served a mission: what is told of one belongs to the other.
INSERT INTO ads_served (session, mission) VALUES (:session, :mission) ON CONFLICT DO NOTHING;

-- name: set_storage
-- Which job has a mission's ads stored.
UPDATE ads_missions SET storage = :job WHERE id = :mission;

-- name: take_worker
-- A worker has a mission.
UPDATE ads_workers SET status = 'scraping', mission = :mission, updated_at = (SELECT clock())
WHERE id = :worker
RETURNING name;
