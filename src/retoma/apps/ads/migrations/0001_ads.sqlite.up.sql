-- What the ads orchestrator remembers. The document's five tables are views over these, with its columns.
CREATE TABLE ads_numbers (
    name  text PRIMARY KEY,
    last  integer NOT NULL
) STRICT;

INSERT INTO ads_numbers (name, last) VALUES ('MIS', 0), ('WRK', 0), ('PRX', 0), ('WRT', 0);

CREATE TABLE ads_workers (
    id               text PRIMARY KEY,
    name             text NOT NULL,
    url              text NOT NULL,
    storage_domain   text,
    status           text NOT NULL DEFAULT 'idle' CHECK (status IN
                        ('idle', 'initializing', 'ready', 'scraping', 'error')),
    session_count    integer NOT NULL DEFAULT 0,
    mission          text,
    active           integer NOT NULL DEFAULT 1,
    failures         integer NOT NULL DEFAULT 0,
    rests_until      integer,
    last_proxy       text,
    last_test_at     integer,
    last_test_ok     integer,
    last_test_ms     integer,
    last_test_error  text,
    created_at       integer NOT NULL,
    updated_at       integer NOT NULL,
    deleted_at       integer
) STRICT;

CREATE INDEX idx_workers_active ON ads_workers (active) WHERE active = 1;

CREATE INDEX idx_workers_status ON ads_workers (status);

CREATE TABLE ads_proxies (
    id               text PRIMARY KEY,
    name             text NOT NULL,
    host             text NOT NULL,
    port             integer,
    username         text,
    vendor           text NOT NULL DEFAULT '',
    last_test_at     integer,
    last_test_ok     integer,
    last_test_ms     integer,
    last_test_error  text,
    created_at       integer NOT NULL,
    deleted_at       integer
) STRICT;

CREATE UNIQUE INDEX ads_proxies_name ON ads_proxies (name) WHERE deleted_at IS NULL;

CREATE TABLE ads_writers (
    id               text PRIMARY KEY,
    name             text NOT NULL,
    url              text NOT NULL,
    active           integer NOT NULL DEFAULT 1,
    last_test_at     integer,
    last_test_ok     integer,
    last_test_ms     integer,
    last_test_error  text,
    created_at       integer NOT NULL,
    updated_at       integer NOT NULL,
    deleted_at       integer
) STRICT;

-- A session outlives our process: its proxy is free only when it is known to have ended.
CREATE TABLE ads_sessions (
    id            INTEGER PRIMARY KEY,
    worker        text NOT NULL REFERENCES ads_workers,
    job           integer,
    proxy         text REFERENCES ads_proxies,
    proxy_name    text,
    served        integer NOT NULL DEFAULT 0,
    lost          text,
    began_at      integer NOT NULL,
    opened_at     integer,
    ready_at      integer,
    silent_since  integer,
    ended_at      integer,
    waits_since   integer,
    ended_for     text,
    asked_rest    real
) STRICT;

CREATE UNIQUE INDEX ads_sessions_worker ON ads_sessions (worker) WHERE ended_at IS NULL;

CREATE UNIQUE INDEX ads_sessions_proxy ON ads_sessions (proxy) WHERE ended_at IS NULL AND proxy IS NOT NULL;

CREATE UNIQUE INDEX ads_sessions_job ON ads_sessions (job);

CREATE TABLE ads_missions (
    id               text PRIMARY KEY,
    date_start       text NOT NULL,
    date_end         text NOT NULL CHECK (date_end >= date_start),
    media_type       text NOT NULL CHECK (media_type IN ('all', 'video', 'image')),
    languages        text NOT NULL,
    status           text NOT NULL DEFAULT 'novo' CHECK (status IN
                         ('novo', 'queued', 'running', 'completed', 'failed', 'canceled')),
    checkpoint       text CHECK (checkpoint IN
                         ('atribuido', 'extracao', 'armazenamento', 'finalizado')),
    generation       integer NOT NULL DEFAULT 0,
    extraction       integer,
    storage          integer,
    session          integer,
    worker_id        text REFERENCES ads_workers,
    worker_job_id    text,
    worker_data_url  text,
    proxy_used       text,
    writer_id        text REFERENCES ads_writers,
    writer_job_id    text,
    ads_count        integer,
    success_count    integer,
    failed_count     integer,
    error_code       text,
    error_message    text,
    session_retries  integer NOT NULL DEFAULT 0,
    scrape_retries   integer NOT NULL DEFAULT 0,
    writer_retries   integer NOT NULL DEFAULT 0,
    created_by       text NOT NULL,
    queued_by        text,
    canceled_by      text,
    created_at       integer NOT NULL,
    queued_at        integer,
    started_at       integer,
    scraped_at       integer,
    finished_at      integer,
    deleted_at       integer,
    parks            integer NOT NULL DEFAULT 0,
    resends          integer NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX idx_missions_status ON ads_missions (status);

CREATE INDEX idx_missions_checkpoint ON ads_missions (checkpoint) WHERE checkpoint IS NOT NULL;

CREATE INDEX idx_missions_dates ON ads_missions (date_start, date_end);

CREATE INDEX idx_missions_worker ON ads_missions (worker_id) WHERE status = 'running';

CREATE INDEX idx_missions_queued ON ads_missions (queued_at) WHERE status = 'queued';

CREATE INDEX ads_missions_extraction ON ads_missions (extraction) WHERE extraction IS NOT NULL;

CREATE INDEX ads_missions_storage ON ads_missions (storage) WHERE storage IS NOT NULL;

-- Which missions a session served: what was told of it belongs to the story of each of them.
CREATE TABLE ads_served (
    session  integer NOT NULL,
    mission  text NOT NULL,
    left_at  integer,
    PRIMARY KEY (session, mission)
) STRICT;

CREATE INDEX ads_served_mission ON ads_served (mission);

CREATE TABLE ads_logs (
    id       INTEGER PRIMARY KEY,
    mission  text,
    session  integer,
    event    text NOT NULL CHECK (event IN
                 ('mission_queued', 'mission_assigned', 'mission_canceled', 'session_started',
                  'session_ready', 'session_failed', 'session_terminated', 'scrape_started',
                  'scrape_progress', 'scrape_completed', 'scrape_failed', 'scrape_empty',
                  'writer_started', 'writer_progress', 'writer_completed', 'writer_failed',
                  'mission_completed', 'mission_failed', 'retry_triggered', 'proxy_rotated')),
    details  text,
    at       integer NOT NULL
) STRICT;

CREATE INDEX idx_mission_logs_mission ON ads_logs (mission);

CREATE INDEX ads_logs_session ON ads_logs (session) WHERE session IS NOT NULL;

CREATE INDEX idx_mission_logs_event ON ads_logs (event);

CREATE INDEX idx_mission_logs_timestamp ON ads_logs (at DESC);

-- Whether the orchestrator is to work: a wish that outlives whoever said it.
CREATE TABLE ads_orchestrator (
    one         integer PRIMARY KEY CHECK (one = 1),
    wish        text NOT NULL CHECK (wish IN ('started', 'stopped')),
    changed_by  text NOT NULL,
    changed_at  integer
) STRICT;

INSERT INTO ads_orchestrator (one, wish, changed_by) VALUES (1, 'stopped', 'nobody');

-- The document's tables: its columns, in its order, for its own queries. Times as SQLite writes them.
CREATE VIEW missions AS
SELECT id, date_start, date_end, media_type, languages, status, checkpoint, worker_id,
       worker_job_id, worker_data_url, proxy_used, writer_job_id, ads_count, error_code,
       error_message, session_retries + scrape_retries + writer_retries AS retry_count,
       strftime('%Y-%m-%d %H:%M:%f', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%d %H:%M:%f', queued_at / 1e6, 'unixepoch') AS queued_at,
       strftime('%Y-%m-%d %H:%M:%f', started_at / 1e6, 'unixepoch') AS started_at,
       strftime('%Y-%m-%d %H:%M:%f', finished_at / 1e6, 'unixepoch') AS finished_at
FROM ads_missions WHERE deleted_at IS NULL;

CREATE VIEW workers AS
SELECT w.id, w.name, w.url, 'vault:ads_workers/' || w.id AS api_key, w.storage_domain, w.status,
       w.session_count, w.mission AS current_mission_id, s.proxy AS current_proxy_id, w.active,
       strftime('%Y-%m-%d %H:%M:%f', w.last_test_at / 1e6, 'unixepoch') AS last_test_at,
       w.last_test_ok,
       strftime('%Y-%m-%d %H:%M:%f', w.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%d %H:%M:%f', w.updated_at / 1e6, 'unixepoch') AS updated_at
FROM ads_workers w LEFT JOIN ads_sessions s ON s.worker = w.id AND s.ended_at IS NULL
WHERE w.deleted_at IS NULL;

CREATE VIEW proxies AS
SELECT p.id, p.name, p.host, p.port, p.username,
       CASE WHEN p.username IS NOT NULL THEN 'vault:ads_proxies/' || p.id END AS password,
       coalesce(i.state = 'on', 0) AS active, s.worker AS in_use_by_worker_id,
       coalesce(i.failures, 0) AS fail_count,
       strftime('%Y-%m-%d %H:%M:%f', i.used_at / 1e6, 'unixepoch') AS last_used_at,
       strftime('%Y-%m-%d %H:%M:%f', p.last_test_at / 1e6, 'unixepoch') AS last_test_at,
       p.last_test_ok,
       strftime('%Y-%m-%d %H:%M:%f', p.created_at / 1e6, 'unixepoch') AS created_at
FROM ads_proxies p
LEFT JOIN pool_items i ON i.pool = 'ads.proxies' AND i.name = p.id
LEFT JOIN ads_sessions s ON s.proxy = p.id AND s.ended_at IS NULL
WHERE p.deleted_at IS NULL;

CREATE VIEW writers AS
SELECT id, name, url, 'vault:ads_writers/' || id AS api_key, active,
       strftime('%Y-%m-%d %H:%M:%f', last_test_at / 1e6, 'unixepoch') AS last_test_at,
       last_test_ok,
       strftime('%Y-%m-%d %H:%M:%f', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%d %H:%M:%f', updated_at / 1e6, 'unixepoch') AS updated_at
FROM ads_writers WHERE deleted_at IS NULL;

CREATE TRIGGER missions_refuse_insert INSTEAD OF INSERT ON missions
BEGIN
    SELECT RAISE(ABORT, 'missions is a view: use the API, /api/missions');
END;

CREATE TRIGGER missions_refuse_update INSTEAD OF UPDATE ON missions
BEGIN
    SELECT RAISE(ABORT, 'missions is a view: use the API, /api/missions');
END;

CREATE TRIGGER missions_refuse_delete INSTEAD OF DELETE ON missions
BEGIN
    SELECT RAISE(ABORT, 'missions is a view: use the API, /api/missions');
END;

CREATE TRIGGER workers_refuse_insert INSTEAD OF INSERT ON workers
BEGIN
    SELECT RAISE(ABORT, 'workers is a view: use the API, /api/workers');
END;

CREATE TRIGGER workers_refuse_update INSTEAD OF UPDATE ON workers
BEGIN
    SELECT RAISE(ABORT, 'workers is a view: use the API, /api/workers');
END;

CREATE TRIGGER workers_refuse_delete INSTEAD OF DELETE ON workers
BEGIN
    SELECT RAISE(ABORT, 'workers is a view: use the API, /api/workers');
END;

CREATE TRIGGER proxies_refuse_insert INSTEAD OF INSERT ON proxies
BEGIN
    SELECT RAISE(ABORT, 'proxies is a view: use the API, /api/proxies');
END;

CREATE TRIGGER proxies_refuse_update INSTEAD OF UPDATE ON proxies
BEGIN
    SELECT RAISE(ABORT, 'proxies is a view: use the API, /api/proxies');
END;

CREATE TRIGGER proxies_refuse_delete INSTEAD OF DELETE ON proxies
BEGIN
    SELECT RAISE(ABORT, 'proxies is a view: use the API, /api/proxies');
END;

CREATE TRIGGER writers_refuse_insert INSTEAD OF INSERT ON writers
BEGIN
    SELECT RAISE(ABORT, 'writers is a view: use the API, /api/writers');
END;

CREATE TRIGGER writers_refuse_update INSTEAD OF UPDATE ON writers
BEGIN
    SELECT RAISE(ABORT, 'writers is a view: use the API, /api/writers');
END;

CREATE TRIGGER writers_refuse_delete INSTEAD OF DELETE ON writers
BEGIN
    SELECT RAISE(ABORT, 'writers is a view: use the API, /api/writers');
END;

INSERT INTO pools (name, pick, cool_down, off_after, healthy)
VALUES ('ads.proxies', 'random', 0, 3, 0), ('ads.sessions', 'oldest', 0, NULL, 0);

-- Ads that a writer could not store, as it tells of them.
CREATE TABLE ads_failed_items (
    mission  text NOT NULL,
    place    integer NOT NULL,
    data     text,
    error    text NOT NULL,
    PRIMARY KEY (mission, place)
) STRICT;

CREATE TRIGGER ads_unpark AFTER UPDATE OF state ON jobs
WHEN NEW.kind IN ('ads.extraction', 'ads.storage') AND OLD.state = 'parked'
     AND NEW.state = 'waiting' AND OLD.reason IS NOT 'unknown_remote'
BEGIN
    UPDATE ads_missions SET parks = parks + 1 WHERE extraction = NEW.id OR storage = NEW.id;
END;

-- What was taken over from a database of the document's shape, so that nothing is taken over twice.
CREATE TABLE ads_adopted (
    source  text NOT NULL,
    sort    text NOT NULL CHECK (sort IN
                ('workers', 'proxies', 'writers', 'missions', 'mission_logs')),
    old     text NOT NULL,
    new     text,
    PRIMARY KEY (source, sort, old)
) STRICT, WITHOUT ROWID;

-- What is remembered besides of scrapes that nobody saw end, and of jobs that are tried again by hand.
CREATE TABLE ads_left_scrapes (
    worker  text NOT NULL REFERENCES ads_workers,
    job_id  text NOT NULL,
    PRIMARY KEY (worker, job_id)
) STRICT;

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
