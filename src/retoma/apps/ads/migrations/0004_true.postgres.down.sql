-- As before.
DROP TRIGGER ads_retry ON jobs;

DROP FUNCTION ads_retry_job;

CREATE OR REPLACE FUNCTION ads_follow_job() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    found ads_missions%ROWTYPE;
BEGIN
    UPDATE ads_missions
    SET status = CASE NEW.state WHEN 'dead' THEN 'failed' ELSE 'canceled' END,
        error_code = CASE NEW.state WHEN 'dead' THEN 'ERROR500' END,
        error_message = CASE NEW.state WHEN 'dead' THEN coalesce(NEW.code, NEW.reason) END,
        canceled_by = CASE NEW.state WHEN 'dead' THEN NULL ELSE coalesce(canceled_by, 'operator') END,
        finished_at = NEW.ended_at
    WHERE (extraction = NEW.id OR storage = NEW.id) AND status IN ('queued', 'running')
    RETURNING * INTO found;
    IF found.id IS NOT NULL AND NEW.state = 'dead' THEN
        INSERT INTO ads_logs (mission, event, details, at)
        VALUES (found.id, 'mission_failed', json_build_object('error_code', 'ERROR500',
            'error_message', found.error_message, 'retry_count',
            found.session_retries + found.scrape_retries + found.writer_retries), NEW.ended_at);
    ELSIF found.id IS NOT NULL THEN
        INSERT INTO ads_logs (mission, event, details, at)
        VALUES (found.id, 'mission_canceled', json_build_object('canceled_by', found.canceled_by,
            'previous_checkpoint', found.checkpoint), NEW.ended_at);
    END IF;
    UPDATE ads_workers w SET status = 'ready', mission = NULL, updated_at = NEW.ended_at
    FROM ads_missions m
    WHERE m.extraction = NEW.id AND w.mission = m.id AND w.status = 'scraping';
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION ads_refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is a view: use the API, /api/%', TG_TABLE_NAME, TG_TABLE_NAME;
END $$;

CREATE OR REPLACE VIEW mission_logs AS
SELECT 'LOG-' || id AS id, mission AS mission_id, event, details,
       at AS timestamp
FROM ads_logs WHERE mission IS NOT NULL
UNION ALL
SELECT 'LOG-' || l.id || '-' || v.mission, v.mission, l.event, l.details, l.at
FROM ads_logs l JOIN ads_served v ON v.session = l.session
WHERE l.mission IS NULL AND (v.left_at IS NULL OR l.at <= v.left_at);

CREATE OR REPLACE VIEW proxies AS
SELECT p.id, p.name, p.host, p.port, p.username,
       CASE WHEN p.username IS NOT NULL THEN 'vault:ads_proxies/' || p.id END AS password,
       coalesce(i.state = 'on', false) AS active, s.worker AS in_use_by_worker_id,
       coalesce(i.failures, 0) AS fail_count, i.used_at AS last_used_at,
       p.last_test_at, p.last_test_ok, p.created_at
FROM ads_proxies p
LEFT JOIN pool_items i ON i.pool = 'ads.proxies' AND i.name = p.id
LEFT JOIN ads_sessions s ON s.proxy = p.id AND s.ended_at IS NULL
WHERE p.deleted_at IS NULL;

ALTER TABLE ads_sessions DROP COLUMN asked_rest;

DROP TABLE ads_left_scrapes;
