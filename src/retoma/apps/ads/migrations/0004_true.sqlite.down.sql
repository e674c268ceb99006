-- As before.
DROP TRIGGER ads_retry;

DROP TRIGGER ads_follow;

CREATE TRIGGER ads_follow AFTER UPDATE OF state ON jobs
WHEN NEW.kind IN ('ads.extraction', 'ads.storage') AND NEW.state IN ('dead', 'canceled', 'skipped')
     AND OLD.state IS NOT NEW.state
BEGIN
    INSERT INTO ads_logs (mission, event, details, at)
    SELECT id, CASE NEW.state WHEN 'dead' THEN 'mission_failed' ELSE 'mission_canceled' END,
           CASE NEW.state
               WHEN 'dead' THEN json_object('error_code', 'ERROR500',
                   'error_message', coalesce(NEW.code, NEW.reason),
                   'retry_count', session_retries + scrape_retries + writer_retries)
               ELSE json_object('canceled_by', coalesce(canceled_by, 'operator'),
                   'previous_checkpoint', checkpoint) END,
           NEW.ended_at
    FROM ads_missions
    WHERE (extraction = NEW.id OR storage = NEW.id) AND status IN ('queued', 'running');
    UPDATE ads_missions
    SET status = CASE NEW.state WHEN 'dead' THEN 'failed' ELSE 'canceled' END,
        error_code = CASE NEW.state WHEN 'dead' THEN 'ERROR500' END,
        error_message = CASE NEW.state WHEN 'dead' THEN coalesce(NEW.code, NEW.reason) END,
        canceled_by = CASE NEW.state WHEN 'dead' THEN NULL ELSE coalesce(canceled_by, 'operator') END,
        finished_at = NEW.ended_at
    WHERE (extraction = NEW.id OR storage = NEW.id) AND status IN ('queued', 'running');
    UPDATE ads_workers SET status = 'ready', mission = NULL, updated_at = NEW.ended_at
    WHERE status = 'scraping'
      AND mission IN (SELECT id FROM ads_missions WHERE extraction = NEW.id);
END;

DROP VIEW mission_logs;

CREATE VIEW mission_logs AS
SELECT 'LOG-' || id AS id, mission AS mission_id, event, details,
       strftime('%Y-%m-%d %H:%M:%S', at / 1000000, 'unixepoch')
           || printf('.%06d', at % 1000000) AS timestamp
FROM ads_logs WHERE mission IS NOT NULL
UNION ALL
SELECT 'LOG-' || l.id || '-' || v.mission, v.mission, l.event, l.details,
       strftime('%Y-%m-%d %H:%M:%S', l.at / 1000000, 'unixepoch')
           || printf('.%06d', l.at % 1000000)
FROM ads_logs l JOIN ads_served v ON v.session = l.session
WHERE l.mission IS NULL AND (v.left_at IS NULL OR l.at <= v.left_at);

CREATE TRIGGER mission_logs_refuse_insert INSTEAD OF INSERT ON mission_logs
BEGIN
    SELECT RAISE(ABORT, 'mission_logs is a view: use the API, /api/missions');
END;

CREATE TRIGGER mission_logs_refuse_update INSTEAD OF UPDATE ON mission_logs
BEGIN
    SELECT RAISE(ABORT, 'mission_logs is a view: use the API, /api/missions');
END;

CREATE TRIGGER mission_logs_refuse_delete INSTEAD OF DELETE ON mission_logs
BEGIN
    SELECT RAISE(ABORT, 'mission_logs is a view: use the API, /api/missions');
END;

ALTER TABLE ads_sessions DROP COLUMN asked_rest;

DROP TABLE ads_left_scrapes;
