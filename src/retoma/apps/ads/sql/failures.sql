-- name: count_retry
-- One more try of a phase; how many there have been of each.
UPDATE ads_missions
SET session_retries = session_retries + CASE WHEN :phase = 'session' THEN 1 ELSE 0 END,
    scrape_retries = scrape_retries + CASE WHEN :phase IN ('scrape', 'storage') THEN 1 ELSE 0 END,
    writer_retries = writer_retries + CASE WHEN :phase = 'writer' THEN 1 ELSE 0 END,
    error_code = :code, error_message = :message
WHERE id = :mission;

-- name: fail_mission
-- A mission has failed; the last real cause stays in the message.
UPDATE ads_missions
SET status = 'failed', error_code = :code, error_message = :message, finished_at = (SELECT clock())
WHERE id = :mission AND status = 'running'
RETURNING session_retries + scrape_retries + writer_retries;

-- name: mission_goes_on
-- Whether a mission is still to be done.
SELECT status = 'running' FROM ads_missions WHERE id = :mission;

-- name: note_failure
-- The last cause of trouble of a mission that goes on.
UPDATE ads_missions SET error_code = :code, error_message = :message
WHERE id = :mission AND status = 'running';

-- name: phase_retries
-- How often each phase of a mission was tried again.
SELECT session_retries, scrape_retries, writer_retries FROM ads_missions WHERE id = :mission;
