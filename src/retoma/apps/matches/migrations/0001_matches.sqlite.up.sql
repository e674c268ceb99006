-- Rounds that are scraped, their matches, and what was stored of them; the document's two tables are views.
-- A run is one scraping of a round, a task one match of it: where its match is stored the task is done,
-- by the same commit, so that no status is stored twice and none can be late.
CREATE TABLE match_runs (
    id            integer PRIMARY KEY AUTOINCREMENT,
    league        text NOT NULL,
    season        integer NOT NULL,
    round         integer NOT NULL CHECK (round > 0),
    batch         integer,
    discovery     integer,
    looks         integer NOT NULL DEFAULT 1,
    expected      integer CHECK (expected > 0),
    not_yet       text,
    error         text,
    snapshot      text,
    created_by    text NOT NULL,
    created_at    integer NOT NULL,
    completed_at  integer,
    ended_at      integer,
    completions   integer NOT NULL DEFAULT 0,
    correlation   text
) STRICT;

-- Of starts at the same moment one begins a run, and the others find it.
CREATE UNIQUE INDEX match_runs_active ON match_runs (league, season, round) WHERE ended_at IS NULL;

CREATE INDEX match_runs_round ON match_runs (league, season, round, id);

CREATE INDEX match_runs_discovery ON match_runs (discovery);

CREATE TABLE match_tasks (
    id          integer PRIMARY KEY AUTOINCREMENT,
    run         integer NOT NULL,
    match_key   text NOT NULL,
    home        text NOT NULL,
    away        text NOT NULL,
    url         text NOT NULL,
    kickoff     integer,
    job         integer,
    partida     integer,
    already     integer NOT NULL DEFAULT 0,
    not_yet     text,
    error       text,
    snapshot    text,
    created_at  integer NOT NULL
) STRICT;

CREATE UNIQUE INDEX match_tasks_key ON match_tasks (run, match_key);

CREATE UNIQUE INDEX match_tasks_job ON match_tasks (job);

-- What is not stored is looked for time and again; what is, never.
CREATE INDEX match_tasks_missing ON match_tasks (run) WHERE partida IS NULL;

-- Who deletes a match looks for the tasks that name it.
CREATE INDEX match_tasks_partida ON match_tasks (partida) WHERE partida IS NOT NULL;

CREATE TABLE times (
    league  text NOT NULL,
    key     text NOT NULL,
    name    text NOT NULL,
    PRIMARY KEY (league, key)
) STRICT;

CREATE TABLE partidas (
    id          integer PRIMARY KEY AUTOINCREMENT,
    league      text NOT NULL,
    season      integer NOT NULL,
    round       integer NOT NULL,
    home        text NOT NULL,
    away        text NOT NULL,
    status      text NOT NULL CHECK (status = 'finished'),
    kickoff     integer NOT NULL,
    stadium     text NOT NULL,
    home_score  integer NOT NULL CHECK (home_score >= 0),
    away_score  integer NOT NULL CHECK (away_score >= 0),
    lineups     text NOT NULL,
    url         text NOT NULL,
    stored_by   text NOT NULL,
    stored_at   integer NOT NULL,
    revision    integer NOT NULL DEFAULT 1,
    walkover    integer NOT NULL DEFAULT 0,
    CHECK (home <> away)
) STRICT;

CREATE UNIQUE INDEX partidas_match ON partidas (league, season, round, home, away);

CREATE TABLE partida_eventos (
    partida  integer NOT NULL,
    n        integer NOT NULL,
    minute   integer NOT NULL,
    added    integer,
    side     text NOT NULL CHECK (side IN ('home', 'away')),
    kind     text NOT NULL,
    player   text NOT NULL,
    other    text,
    PRIMARY KEY (partida, n)
) STRICT;

CREATE TABLE partida_estatisticas (
    partida  integer NOT NULL,
    name     text NOT NULL,
    home     integer NOT NULL,
    away     integer NOT NULL,
    PRIMARY KEY (partida, name)
) STRICT;

-- What people say of rounds: how many matches one has, and which of them never was.
-- A task names only its own match, and a stored match has a revision.
CREATE TABLE match_dropped (
    league      text NOT NULL,
    season      integer NOT NULL,
    round       integer NOT NULL,
    match_key   text NOT NULL,
    why         text NOT NULL,
    dropped_by  text NOT NULL,
    dropped_at  integer NOT NULL,
    PRIMARY KEY (league, season, round, match_key)
) STRICT;

CREATE TABLE match_sizes (
    league        text NOT NULL,
    season        integer NOT NULL,
    round         integer NOT NULL,
    matches       integer NOT NULL CHECK (matches > 0),
    why           text NOT NULL,
    confirmed_by  text NOT NULL,
    confirmed_at  integer NOT NULL,
    PRIMARY KEY (league, season, round)
) STRICT;

-- What failed says why, also where its story never came to say it: lost, too late, or something nobody
-- thought of.
CREATE VIEW scrape_tasks AS
SELECT t.id, t.run AS job_id, r.league, r.season, r.round, t.match_key, t.home, t.away, t.url, t.kickoff,
       CASE WHEN t.partida IS NOT NULL THEN CASE WHEN t.already = 1 THEN 'SKIPPED' ELSE 'DONE' END
            WHEN x.match_key IS NOT NULL THEN 'SKIPPED'
            WHEN j.state = 'running' THEN 'RUNNING'
            WHEN j.state IN ('skipped', 'canceled') AND t.error ->> 'code' IS NOT 'DELETED' THEN 'SKIPPED'
            WHEN j.state = 'waiting' AND t.not_yet IS NOT NULL THEN 'NOT_YET'
            WHEN j.state IN ('waiting', 'parked') THEN 'PENDING'
            ELSE 'FAILED' END AS status,
       coalesce(j.failures, 0) + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS attempts,
       CASE WHEN t.partida IS NULL THEN
           coalesce(j.code, CASE WHEN j.state IN ('done', 'skipped') THEN t.error ->> 'code' END) END AS error_code,
       CASE WHEN t.partida IS NULL THEN
           CASE WHEN j.state = 'dead' AND t.error ->> 'code' IS NOT j.code
                THEN json_object('code', j.code, 'reason', j.reason) ELSE t.error END END AS error,
       CASE WHEN t.partida IS NULL THEN t.snapshot END AS snapshot,
       CASE WHEN j.state = 'waiting' THEN t.not_yet END AS not_yet,
       CASE WHEN j.state = 'waiting' AND t.partida IS NULL THEN j.run_at END AS look_again_at,
       t.partida AS partida_id, t.job, t.created_at, x.why AS dropped
FROM match_tasks t JOIN match_runs r ON r.id = t.run LEFT JOIN jobs j ON j.id = t.job
LEFT JOIN match_dropped x ON x.league = r.league AND x.season = r.season AND x.round = r.round
    AND x.match_key = t.match_key;

-- Of a scrape its own tasks are counted, by their index: the view of tasks inside of this one would be
-- made anew of all that ever were.
CREATE VIEW scrape_jobs AS
SELECT s.id, s.league, s.season, s.round,
       CASE WHEN s.expected IS NULL THEN CASE s.found
                WHEN 'running' THEN 'RUNNING' WHEN 'parked' THEN 'PENDING'
                WHEN 'waiting' THEN CASE WHEN s.not_yet IS NULL THEN 'PENDING' ELSE 'NOT_YET' END
                WHEN 'skipped' THEN 'SKIPPED' WHEN 'canceled' THEN 'SKIPPED' ELSE 'FAILED' END
            WHEN s.stored = s.expected THEN 'DONE'
            WHEN s.pending + s.running = 0 AND s.found NOT IN ('waiting', 'running', 'parked')
                 AND (s.failed + s.left_out > 0 OR s.found = 'dead') THEN 'FAILED'
            WHEN s.pending + s.running = 0 AND s.later > 0 THEN 'NOT_YET'
            WHEN s.pending + s.running = 0 AND s.found NOT IN ('waiting', 'running', 'parked') THEN 'FAILED'
            WHEN s.running = 0 AND s.stored + s.failed + s.left_out + s.later = 0 THEN 'PENDING'
            ELSE 'RUNNING' END AS status,
       s.expected, s.stored, s.pending, s.running, s.later AS not_yet, s.failed, s.left_out,
       s.dropped, s.listed,
       CASE WHEN s.stored = s.expected THEN 1 ELSE 0 END AS complete,
       CASE WHEN s.pending + s.running + s.later > 0
                 OR s.found IN ('waiting', 'running', 'parked') THEN 1 ELSE 0 END AS open,
       s.found AS discovery_state, s.code AS discovery_code,
       CASE WHEN s.found = 'dead' AND s.error ->> 'code' IS NOT s.code
            THEN json_object('code', s.code, 'reason', s.reason) ELSE s.error END AS error,
       s.snapshot, s.batch, s.discovery,
       s.created_by, s.created_at, s.completed_at, s.ended_at
FROM (
    SELECT r.id, r.league, r.season, r.round, r.expected, r.not_yet, r.error, r.snapshot, r.batch,
           r.discovery, r.created_by, r.created_at, r.completed_at, r.ended_at,
           coalesce(d.state, 'done') AS found, d.code, d.reason,
           count(t.partida) AS stored,
           count(t.id) FILTER (WHERE x.match_key IS NULL) AS listed,
           count(t.id) FILTER (WHERE x.match_key IS NOT NULL) AS dropped,
           count(t.id) FILTER (WHERE t.partida IS NULL AND x.match_key IS NULL
               AND (j.state = 'parked' OR j.state = 'waiting' AND t.not_yet IS NULL)) AS pending,
           count(t.id) FILTER (WHERE t.partida IS NULL AND x.match_key IS NULL AND j.state = 'running') AS running,
           count(t.id) FILTER (WHERE t.partida IS NULL AND x.match_key IS NULL
               AND j.state = 'waiting' AND t.not_yet IS NOT NULL) AS later,
           count(t.id) FILTER (WHERE t.partida IS NULL AND x.match_key IS NULL
               AND (coalesce(j.state, 'dead') IN ('dead', 'done')
                    OR j.state IN ('skipped', 'canceled') AND t.error ->> 'code' IS 'DELETED')) AS failed,
           count(t.id) FILTER (WHERE t.partida IS NULL AND x.match_key IS NULL AND j.state IN ('skipped', 'canceled')
               AND t.error ->> 'code' IS NOT 'DELETED') AS left_out
    FROM match_runs r LEFT JOIN jobs d ON d.id = r.discovery
    LEFT JOIN match_tasks t ON t.run = r.id LEFT JOIN jobs j ON j.id = t.job
    LEFT JOIN match_dropped x ON x.league = r.league AND x.season = r.season AND x.round = r.round
        AND x.match_key = t.match_key
    GROUP BY r.id, r.league, r.season, r.ended_at) s;

CREATE TRIGGER scrape_tasks_insert INSTEAD OF INSERT ON scrape_tasks
BEGIN SELECT raise(ABORT, 'scrape_tasks is a view: use the API, /api/scrape'); END;

CREATE TRIGGER scrape_tasks_update INSTEAD OF UPDATE ON scrape_tasks
BEGIN SELECT raise(ABORT, 'scrape_tasks is a view: use the API, /api/scrape'); END;

CREATE TRIGGER scrape_tasks_delete INSTEAD OF DELETE ON scrape_tasks
BEGIN SELECT raise(ABORT, 'scrape_tasks is a view: use the API, /api/scrape'); END;

CREATE TRIGGER scrape_jobs_insert INSTEAD OF INSERT ON scrape_jobs
BEGIN SELECT raise(ABORT, 'scrape_jobs is a view: use the API, /api/scrape'); END;

CREATE TRIGGER scrape_jobs_update INSTEAD OF UPDATE ON scrape_jobs
BEGIN SELECT raise(ABORT, 'scrape_jobs is a view: use the API, /api/scrape'); END;

CREATE TRIGGER scrape_jobs_delete INSTEAD OF DELETE ON scrape_jobs
BEGIN SELECT raise(ABORT, 'scrape_jobs is a view: use the API, /api/scrape'); END;
