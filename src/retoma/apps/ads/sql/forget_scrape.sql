-- Forget a scrape that was seen to be over.
DELETE FROM ads_left_scrapes WHERE worker = :worker AND job_id = :job_id;
