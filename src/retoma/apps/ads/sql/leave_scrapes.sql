-- Remember what is scraped in a session that is given up: nobody will see it end.
INSERT INTO ads_left_scrapes (worker, job_id)
SELECT worker_id, worker_job_id FROM ads_missions
WHERE session = :session AND status = 'running' AND checkpoint = 'extracao'
  AND worker_job_id IS NOT NULL
ON CONFLICT DO NOTHING;
