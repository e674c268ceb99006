-- A mission has failed; the last real cause stays in the message.
UPDATE ads_missions
SET status = 'failed', error_code = :code, error_message = :message, finished_at = (SELECT clock())
WHERE id = :mission AND status = 'running'
RETURNING session_retries + scrape_retries + writer_retries;
