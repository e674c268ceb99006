-- Under which id a worker has the scrape of a mission.
SELECT worker_job_id FROM ads_missions WHERE id = :mission;
