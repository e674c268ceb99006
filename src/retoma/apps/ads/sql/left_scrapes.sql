-- Scrapes of a worker that nobody saw end, oldest name first.
SELECT job_id FROM ads_left_scrapes WHERE worker = :worker ORDER BY job_id;
