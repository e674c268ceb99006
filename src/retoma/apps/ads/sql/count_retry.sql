-- One more try of a phase; how many there have been of each.
UPDATE ads_missions
SET session_retries = session_retries + CASE WHEN :phase = 'session' THEN 1 ELSE 0 END,
    scrape_retries = scrape_retries + CASE WHEN :phase IN ('scrape', 'storage') THEN 1 ELSE 0 END,
    writer_retries = writer_retries + CASE WHEN :phase = 'writer' THEN 1 ELSE 0 END,
    error_code = :code, error_message = :message
WHERE id = :mission;
