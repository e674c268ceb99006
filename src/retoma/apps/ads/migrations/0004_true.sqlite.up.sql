-- What is remembered besides of scrapes that nobody saw end, and of jobs that are tried again by hand.
CREATE TABLE ads_left_scrapes (
    worker  text NOT NULL REFERENCES ads_workers,
    job_id  text NOT NULL,
    PRIMARY KEY (worker, job_id)
) STRICT;

-- For how long a worker has asked to be left alone.
ALTER TABLE ads_sessions ADD COLUMN asked_rest real;

-- Each line of the log is there: of a mission; of a session for each mission it served; of a session
-- alone where no mission had it. A change of proxy counts once, so only its own line names the proxy.
DROP VIEW mission_logs;

CREATE VIEW mission_logs AS
SELECT 'LOG-' || id AS id, mission AS mission_id, event, details,
       strftime('%Y-%m-%d %H:%M:%S', at / 1000000, 'unixepoch')
           || printf('.%06d', at % 1000000) AS timestamp
FROM ads_logs WHERE mission IS NOT NULL
UNION ALL
SELECT 'LOG-' || l.id || '-' || v.mission, v.mission, l.event,
       CASE WHEN l.event = 'proxy_rotated' THEN json_remove(l.details, '$.proxy_name')
            ELSE l.details END,
       strftime('%Y-%m-%d %H:%M:%S', l.at / 1000000, 'unixepoch')
           || printf('.%06d', l.at % 1000000)
FROM ads_logs l JOIN ads_served v ON v.session = l.session
WHERE l.mission IS NULL AND (v.left_at IS NULL OR l.at <= v.left_at)
UNION ALL
SELECT 'LOG-' || l.id, NULL, l.event, l.details,
       strftime('%Y-%m-%d %H:%M:%S', l.at / 1000000, 'unixepoch')
           || printf('.%06d', l.at % 1000000)
FROM ads_logs l
WHERE l.mission IS NULL AND (l.event = 'proxy_rotated' OR NOT EXISTS (
    SELECT 1 FROM ads_served v
    WHERE v.session = l.session AND (v.left_at IS NULL OR l.at <= v.left_at)));

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

-- However a job of a mission ends, and whoever ends it, its mission ends with it, and leaves its session.
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
    UPDATE ads_served SET left_at = NEW.ended_at
    WHERE left_at IS NULL AND mission IN (SELECT id FROM ads_missions WHERE extraction = NEW.id);
    UPDATE ads_workers SET status = 'ready', mission = NULL, updated_at = NEW.ended_at
    WHERE status = 'scraping'
      AND mission IN (SELECT id FROM ads_missions WHERE extraction = NEW.id);
END;

-- A job of a mission that is tried again by the verb of every job: its mission goes on with it.
CREATE TRIGGER ads_retry AFTER UPDATE OF state ON jobs
WHEN NEW.kind IN ('ads.extraction', 'ads.storage') AND OLD.state IN ('dead', 'canceled')
     AND NEW.state = 'waiting'
BEGIN
    INSERT INTO ads_logs (mission, event, details, at)
    SELECT id, CASE WHEN storage = NEW.id THEN 'retry_triggered' ELSE 'mission_queued' END,
           CASE WHEN storage = NEW.id
                THEN json_object('attempt', resends + 1, 'error_code', error_code, 'phase', 'writer')
                ELSE json_object('queued_by', 'operator') END,
           NEW.run_at
    FROM ads_missions
    WHERE status IN ('failed', 'canceled') AND deleted_at IS NULL
      AND (storage = NEW.id OR extraction = NEW.id AND storage IS NULL);
    UPDATE ads_missions
    SET status = 'running', writer_id = NULL, writer_job_id = NULL, success_count = NULL,
        failed_count = NULL, error_code = NULL, error_message = NULL, writer_retries = 0,
        resends = resends + 1, canceled_by = NULL, finished_at = NULL
    WHERE storage = NEW.id AND status IN ('failed', 'canceled') AND deleted_at IS NULL;
    UPDATE ads_missions
    SET status = 'queued', checkpoint = 'atribuido', generation = generation + 1, session = NULL,
        worker_id = NULL, worker_job_id = NULL, worker_data_url = NULL, proxy_used = NULL,
        ads_count = NULL, error_code = NULL, error_message = NULL, session_retries = 0,
        scrape_retries = 0, writer_retries = 0, queued_by = 'operator', canceled_by = NULL,
        started_at = NULL, finished_at = NULL,
        queued_at = NEW.run_at
    WHERE extraction = NEW.id AND storage IS NULL AND status IN ('failed', 'canceled')
      AND deleted_at IS NULL;
END;
