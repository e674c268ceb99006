-- Remember a scrape that nobody saw end, by its worker.
INSERT INTO ads_left_scrapes (worker, job_id) VALUES (:worker, :job_id) ON CONFLICT DO NOTHING;
