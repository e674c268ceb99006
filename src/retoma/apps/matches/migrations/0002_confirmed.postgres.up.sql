-- What people say of rounds: how many matches one has, and which of them never was.
-- A task names only its own match, and a stored match has a revision.

CREATE TABLE match_dropped (
    league      text COLLATE "C" NOT NULL,
    season      integer NOT NULL,
    round       integer NOT NULL,
    match_key   text COLLATE "C" NOT NULL,
    why         text NOT NULL,
    dropped_by  text NOT NULL,
    dropped_at  timestamptz NOT NULL,
    PRIMARY KEY (league, season, round, match_key)
);

CREATE TABLE match_sizes (
    league        text COLLATE "C" NOT NULL,
    season        integer NOT NULL,
    round         integer NOT NULL,
    matches       integer NOT NULL CHECK (matches > 0),
    why           text NOT NULL,
    confirmed_by  text NOT NULL,
    confirmed_at  timestamptz NOT NULL,
    PRIMARY KEY (league, season, round)
);

ALTER TABLE match_runs ADD COLUMN completions integer NOT NULL DEFAULT 0;

ALTER TABLE match_runs ADD COLUMN correlation text;

ALTER TABLE partidas ADD COLUMN revision integer NOT NULL DEFAULT 1;

ALTER TABLE partidas ADD COLUMN walkover integer NOT NULL DEFAULT 0;

-- Who deletes a match looks for the tasks that name it.
CREATE INDEX match_tasks_partida ON match_tasks (partida) WHERE partida IS NOT NULL;

-- A page of another round, season or pair could be stored as the match of a task: the task names it no longer.
UPDATE match_runs SET completed_at = NULL
WHERE EXISTS (
    SELECT 1 FROM match_tasks t LEFT JOIN partidas p ON p.id = t.partida
    WHERE t.run = match_runs.id AND t.partida IS NOT NULL
      AND (p.id IS NULL OR p.league <> match_runs.league OR p.season <> match_runs.season
           OR p.round <> match_runs.round OR p.home <> t.home OR p.away <> t.away));

UPDATE match_tasks SET partida = NULL, already = 0,
    error = '{"code":"OTHER_MATCH","message":"the stored match is of another round, season or pair"}'
WHERE partida IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM partidas p JOIN match_runs r ON r.id = match_tasks.run
    WHERE p.id = match_tasks.partida AND p.league = r.league AND p.season = r.season AND p.round = r.round
      AND p.home = match_tasks.home AND p.away = match_tasks.away);

DROP VIEW scrape_jobs;

DROP VIEW scrape_tasks;

-- What failed says why, also where its story never came to say it: lost, too late, or something nobody
-- thought of.
CREATE VIEW scrape_tasks AS
SELECT t.id, t.run AS job_id, r.league, r.season, r.round, t.match_key, t.home, t.away, t.url, t.kickoff,
       CASE WHEN t.partida IS NOT NULL THEN CASE WHEN t.already = 1 THEN 'SKIPPED' ELSE 'DONE' END
            WHEN x.match_key IS NOT NULL THEN 'SKIPPED'
            WHEN j.state = 'running' THEN 'RUNNING'
            WHEN j.state IN ('skipped', 'canceled') AND t.error ->> 'code' IS DISTINCT FROM 'DELETED' THEN 'SKIPPED'
            WHEN j.state = 'waiting' AND t.not_yet IS NOT NULL THEN 'NOT_YET'
            WHEN j.state IN ('waiting', 'parked') THEN 'PENDING'
            ELSE 'FAILED' END AS status,
       coalesce(j.failures, 0) + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS attempts,
       CASE WHEN t.partida IS NULL THEN
           coalesce(j.code, CASE WHEN j.state IN ('done', 'skipped') THEN t.error ->> 'code' END) END AS error_code,
       CASE WHEN t.partida IS NULL THEN
           CASE WHEN j.state = 'dead' AND t.error ->> 'code' IS DISTINCT FROM j.code
                THEN json_build_object('code', j.code, 'reason', j.reason) ELSE t.error END END AS error,
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
       CASE WHEN s.found = 'dead' AND s.error ->> 'code' IS DISTINCT FROM s.code
            THEN json_build_object('code', s.code, 'reason', s.reason) ELSE s.error END AS error,
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
                    OR j.state IN ('skipped', 'canceled') AND t.error ->> 'code' IS NOT DISTINCT FROM 'DELETED')) AS failed,
           count(t.id) FILTER (WHERE t.partida IS NULL AND x.match_key IS NULL AND j.state IN ('skipped', 'canceled')
               AND t.error ->> 'code' IS DISTINCT FROM 'DELETED') AS left_out
    FROM match_runs r LEFT JOIN jobs d ON d.id = r.discovery
    LEFT JOIN match_tasks t ON t.run = r.id LEFT JOIN jobs j ON j.id = t.job
    LEFT JOIN match_dropped x ON x.league = r.league AND x.season = r.season AND x.round = r.round
        AND x.match_key = t.match_key
    GROUP BY r.id, d.id) s;

CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON scrape_tasks
FOR EACH ROW EXECUTE FUNCTION matches_refuse_write();

CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON scrape_jobs
FOR EACH ROW EXECUTE FUNCTION matches_refuse_write();
