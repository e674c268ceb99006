-- What is remembered besides of scrapes that nobody saw end, and of jobs that are tried again by hand.
CREATE TABLE ads_left_scrapes (
    worker  text COLLATE "C" NOT NULL REFERENCES ads_workers,
    job_id  text COLLATE "C" NOT NULL,
    PRIMARY KEY (worker, job_id)
);

-- For how long a worker has asked to be left alone.
ALTER TABLE ads_sessions ADD COLUMN asked_rest double precision;

-- No outer join, so that FOR UPDATE may name this view: the document's query 6.1 is then refused in
-- our words, and not in those of the database.
CREATE OR REPLACE VIEW proxies AS
SELECT p.id, p.name, p.host, p.port, p.username,
       CASE WHEN p.username IS NOT NULL THEN 'vault:ads_proxies/' || p.id END AS password,
       coalesce((SELECT i.state = 'on' FROM pool_items i
                 WHERE i.pool = 'ads.proxies' AND i.name = p.id), false) AS active,
       (SELECT s.worker FROM ads_sessions s
        WHERE s.proxy = p.id AND s.ended_at IS NULL) AS in_use_by_worker_id,
       coalesce((SELECT i.failures FROM pool_items i
                 WHERE i.pool = 'ads.proxies' AND i.name = p.id), 0) AS fail_count,
       (SELECT i.used_at FROM pool_items i
        WHERE i.pool = 'ads.proxies' AND i.name = p.id) AS last_used_at,
       p.last_test_at, p.last_test_ok, p.created_at
FROM ads_proxies p
WHERE p.deleted_at IS NULL;

-- Each line of the log is there: of a mission; of a session for each mission it served; of a session
-- alone where no mission had it. A change of proxy counts once, so only its own line names the proxy.
CREATE OR REPLACE VIEW mission_logs AS
SELECT 'LOG-' || id AS id, mission AS mission_id, event, details,
       at AS timestamp
FROM ads_logs WHERE mission IS NOT NULL
UNION ALL
SELECT 'LOG-' || l.id || '-' || v.mission, v.mission, l.event,
       CASE WHEN l.event = 'proxy_rotated'
            THEN json_build_object('old_proxy', l.details -> 'old_proxy',
                'new_proxy', l.details -> 'new_proxy', 'reason', l.details -> 'reason')
            ELSE l.details END, l.at
FROM ads_logs l JOIN ads_served v ON v.session = l.session
WHERE l.mission IS NULL AND (v.left_at IS NULL OR l.at <= v.left_at)
UNION ALL
SELECT 'LOG-' || l.id, NULL, l.event, l.details, l.at
FROM ads_logs l
WHERE l.mission IS NULL AND (l.event = 'proxy_rotated' OR NOT EXISTS (
    SELECT 1 FROM ads_served v
    WHERE v.session = l.session AND (v.left_at IS NULL OR l.at <= v.left_at)));

CREATE OR REPLACE FUNCTION ads_refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is a view: use the API, /api/%', TG_TABLE_NAME, TG_TABLE_NAME
    USING HINT = CASE TG_TABLE_NAME
        WHEN 'proxies' THEN 'A session takes its proxy and lets go of it; POST /api/workers/{id}/relocate'
            ' frees it by hand, POST /api/proxies/activate and /deactivate switch it.'
        WHEN 'missions' THEN 'POST /api/missions/queue puts missions into the queue; a session that is'
            ' ready takes the next one by itself.'
        WHEN 'mission_logs' THEN 'Each line is written together with the move it tells of.'
        ELSE 'The API changes it, and tells the audit log.' END;
END $$;

-- However a job of a mission ends, and whoever ends it, its mission ends with it, and leaves its session.
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
    UPDATE ads_served v SET left_at = NEW.ended_at
    FROM ads_missions m
    WHERE m.extraction = NEW.id AND v.mission = m.id AND v.left_at IS NULL;
    UPDATE ads_workers w SET status = 'ready', mission = NULL, updated_at = NEW.ended_at
    FROM ads_missions m
    WHERE m.extraction = NEW.id AND w.mission = m.id AND w.status = 'scraping';
    RETURN NULL;
END $$;

-- A job of a mission that is tried again by the verb of every job: its mission goes on with it.
CREATE FUNCTION ads_retry_job() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    last ads_missions%ROWTYPE;
BEGIN
    SELECT * INTO last FROM ads_missions
    WHERE (extraction = NEW.id OR storage = NEW.id) AND status IN ('failed', 'canceled')
      AND deleted_at IS NULL FOR UPDATE;
    IF last.id IS NULL THEN
        RETURN NULL;
    END IF;
    IF last.storage = NEW.id THEN
        UPDATE ads_missions
        SET status = 'running', writer_id = NULL, writer_job_id = NULL, success_count = NULL,
        failed_count = NULL, error_code = NULL, error_message = NULL, writer_retries = 0,
        resends = resends + 1, canceled_by = NULL, finished_at = NULL
        WHERE id = last.id;
        INSERT INTO ads_logs (mission, event, details, at)
        VALUES (last.id, 'retry_triggered', json_build_object('attempt', last.resends + 1,
            'error_code', last.error_code, 'phase', 'writer'), NEW.run_at);
    ELSIF last.storage IS NULL THEN
        UPDATE ads_missions
        SET status = 'queued', checkpoint = 'atribuido', generation = generation + 1, session = NULL,
        worker_id = NULL, worker_job_id = NULL, worker_data_url = NULL, proxy_used = NULL,
        ads_count = NULL, error_code = NULL, error_message = NULL, session_retries = 0,
        scrape_retries = 0, writer_retries = 0, queued_by = 'operator', canceled_by = NULL,
        started_at = NULL, finished_at = NULL, queued_at = NEW.run_at
        WHERE id = last.id;
        INSERT INTO ads_logs (mission, event, details, at)
        VALUES (last.id, 'mission_queued', json_build_object('queued_by', 'operator'), NEW.run_at);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER ads_retry AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN (NEW.kind IN ('ads.extraction', 'ads.storage') AND OLD.state IN ('dead', 'canceled')
      AND NEW.state = 'waiting')
EXECUTE FUNCTION ads_retry_job();
