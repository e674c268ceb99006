-- How often each phase of a mission was tried again.
SELECT session_retries, scrape_retries, writer_retries FROM ads_missions WHERE id = :mission;
