-- What people have said of rounds stays under other names.
DROP VIEW scrape_jobs;

DROP VIEW scrape_tasks;

DROP INDEX match_tasks_partida;

DROP TABLE IF EXISTS match_dropped_kept;

ALTER TABLE match_dropped RENAME TO match_dropped_kept;

DROP TABLE IF EXISTS match_sizes_kept;

ALTER TABLE match_sizes RENAME TO match_sizes_kept;

ALTER TABLE match_runs DROP COLUMN completions;

ALTER TABLE match_runs DROP COLUMN correlation;

ALTER TABLE partidas DROP COLUMN revision;

ALTER TABLE partidas DROP COLUMN walkover;

-- What failed says why, also where its story never came to say it: lost, too late, or something nobody
-- thought of.
CREATE VIEW scrape_tasks AS
SELECT t.id, t.run AS job_id, r.league, r.season, r.round, t.match_key, t.home, t.away, t.url, t.kickoff,
       CASE WHEN t.partida IS NOT NULL THEN CASE WHEN t.already = 1 THEN 'SKIPPED' ELSE 'DONE' END
            WHEN j.state = 'running' THEN 'RUNNING'
            WHEN j.state IN ('skipped', 'canceled') THEN 'SKIPPED'
            WHEN j.state = 'waiting' AND t.not_yet IS NOT NULL THEN 'NOT_YET'
            WHEN j.state IN ('waiting', 'parked') THEN 'PENDING'
            ELSE 'FAILED' END AS status,
       coalesce(j.failures, 0) + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS attempts,
       CASE WHEN t.partida IS NULL THEN j.code END AS error_code,
       CASE WHEN t.partida IS NULL THEN
           CASE WHEN j.state = 'dead' AND t.error ->> 'code' IS NOT j.code
                THEN json_object('code', j.code, 'reason', j.reason) ELSE t.error END END AS error,
       CASE WHEN t.partida IS NULL THEN t.snapshot END AS snapshot,
       CASE WHEN j.state = 'waiting' THEN t.not_yet END AS not_yet,
       CASE WHEN j.state = 'waiting' AND t.partida IS NULL THEN j.run_at END AS look_again_at,
       t.partida AS partida_id, t.job, t.created_at
FROM match_tasks t JOIN match_runs r ON r.id = t.run LEFT JOIN jobs j ON j.id = t.job;

-- Of a scrape its own tasks are counted, by their index: the view of tasks inside of this one would be
-- made anew of all that ever were.
CREATE VIEW scrape_jobs AS
SELECT s.id, s.league, s.season, s.round,
       CASE WHEN s.expected IS NULL THEN CASE s.found
                WHEN 'running' THEN 'RUNNING' WHEN 'parked' THEN 'PENDING'
                WHEN 'waiting' THEN CASE WHEN s.not_yet IS NULL THEN 'PENDING' ELSE 'NOT_YET' END
                WHEN 'skipped' THEN 'SKIPPED' WHEN 'canceled' THEN 'SKIPPED' ELSE 'FAILED' END
            WHEN s.stored = s.expected THEN 'DONE'
            WHEN s.pending + s.running = 0 AND s.later > 0 THEN 'NOT_YET'
            WHEN s.pending + s.running = 0 AND s.found NOT IN ('waiting', 'running', 'parked') THEN 'FAILED'
            WHEN s.running = 0 AND s.stored + s.failed + s.left_out + s.later = 0 THEN 'PENDING'
            ELSE 'RUNNING' END AS status,
       s.expected, s.stored, s.pending, s.running, s.later AS not_yet, s.failed, s.left_out,
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
           count(t.id) FILTER (WHERE t.partida IS NULL
               AND (j.state = 'parked' OR j.state = 'waiting' AND t.not_yet IS NULL)) AS pending,
           count(t.id) FILTER (WHERE t.partida IS NULL AND j.state = 'running') AS running,
           count(t.id) FILTER (WHERE t.partida IS NULL
               AND j.state = 'waiting' AND t.not_yet IS NOT NULL) AS later,
           count(t.id) FILTER (WHERE t.partida IS NULL
               AND coalesce(j.state, 'dead') IN ('dead', 'done')) AS failed,
           count(t.id) FILTER (WHERE t.partida IS NULL AND j.state IN ('skipped', 'canceled')) AS left_out
    FROM match_runs r LEFT JOIN jobs d ON d.id = r.discovery
    LEFT JOIN match_tasks t ON t.run = r.id LEFT JOIN jobs j ON j.id = t.job
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
