-- name: add_known_tasks
-- Matches that an earlier run of the round has found, and that no page lists any more: none is lost.
INSERT INTO match_tasks (run, match_key, home, away, url, kickoff, created_at)
SELECT r.id, t.match_key, t.home, t.away, t.url, t.kickoff, (SELECT clock())
FROM match_runs r
JOIN match_runs o ON o.league = r.league AND o.season = r.season AND o.round = r.round AND o.id < r.id
JOIN match_tasks t ON t.run = o.id
WHERE r.id = :run AND t.id = (
    SELECT max(n.id) FROM match_tasks n JOIN match_runs m ON m.id = n.run
    WHERE n.match_key = t.match_key AND m.league = r.league AND m.season = r.season
      AND m.round = r.round AND m.id < r.id)
  AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
ON CONFLICT (run, match_key) DO NOTHING
RETURNING id, match_key;

-- name: add_run
-- Begin a run of a round; where one is under way nothing is written.
INSERT INTO match_runs (league, season, round, created_by, created_at, correlation)
VALUES (:league, :season, :round, :actor, (SELECT clock()), :correlation)
ON CONFLICT (league, season, round) WHERE ended_at IS NULL DO NOTHING
RETURNING id;

-- name: confirmed_size
-- How many matches a person says a round has.
SELECT matches FROM match_sizes WHERE league = :league AND season = :season AND round = :round;

-- name: dropped_keys
-- Matches of a round that a person says never were.
SELECT match_key FROM match_dropped WHERE league = :league AND season = :season AND round = :round;

-- name: end_run
-- Nothing of a run is open any more, so the next may begin.
UPDATE match_runs SET ended_at = (SELECT clock()) WHERE id = :run AND ended_at IS NULL;

-- name: expect_tasks
-- How many matches a run has: its tasks, and no fewer than the round has.
-- The round has as many as its league or a person says. What was dropped is not counted; what was added is not stored.
UPDATE match_runs SET expected = nullif(max_of.n, 0), batch = coalesce(batch, :batch), not_yet = NULL, error = NULL,
    snapshot = NULL, completed_at = CASE WHEN CAST(:batch AS bigint) IS NULL
        AND max_of.n = coalesce(match_runs.expected, max_of.n) THEN completed_at END
FROM (SELECT CASE WHEN count(*) > CAST(:size AS integer) THEN count(*) ELSE CAST(:size AS integer) END AS n
      FROM match_tasks t JOIN match_runs r ON r.id = t.run
      WHERE t.run = :run
        AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                        AND x.round = r.round AND x.match_key = t.match_key)) max_of
WHERE id = :run
RETURNING expected;

-- name: find_failed
-- What has failed of the last runs of rounds and has no match: jobs, and their runs.
-- A task whose match a person has deleted is one of them.
SELECT r.id, t.job FROM match_runs r JOIN match_tasks t ON t.run = r.id
JOIN jobs j ON j.id = t.job AND (j.state IN ('dead', 'done')
    OR j.state IN ('skipped', 'canceled') AND coalesce(t.error ->> 'code', '') = 'DELETED')
WHERE r.ended_at IS NULL AND t.partida IS NULL
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:season AS integer) IS NULL OR r.season = :season)
  AND (CAST(:round AS integer) IS NULL OR r.round = :round)
  AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
UNION
SELECT r.id, r.discovery FROM match_runs r JOIN jobs j ON j.id = r.discovery AND j.state = 'dead'
WHERE r.ended_at IS NULL
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:season AS integer) IS NULL OR r.season = :season)
  AND (CAST(:round AS integer) IS NULL OR r.round = :round)
ORDER BY 2 LIMIT :n;

-- name: find_missing
-- Matches of a run that are not stored, and how their tasks stand; without what was dropped.
SELECT v.match_key, v.status, v.job FROM scrape_tasks v
WHERE v.job_id = :run AND v.partida_id IS NULL AND v.dropped IS NULL ORDER BY v.match_key;

-- name: get_run
-- What a story is told of its run.
SELECT id, league, season, round, looks, discovery, expected, correlation FROM match_runs WHERE id = :run;

-- name: hold_run
-- Whoever begins, ends or opens something of the current run of a round waits here for the others who do.
UPDATE match_runs SET looks = looks WHERE id = :run AND ended_at IS NULL RETURNING id;

-- name: known_pairs
-- Who plays whom in a round as far as this run and earlier ones have found it, without what was dropped.
SELECT DISTINCT t.match_key, t.home, t.away
FROM match_runs r
JOIN match_runs o ON o.league = r.league AND o.season = r.season AND o.round = r.round AND o.id <= r.id
JOIN match_tasks t ON t.run = o.id
WHERE r.id = :run
  AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
ORDER BY t.match_key;

-- name: last_run
-- The run of a round that was begun last, and whether something of it is open.
SELECT v.id, v.open FROM scrape_jobs v
WHERE v.id = (SELECT r.id FROM match_runs r
              WHERE r.league = :league AND r.season = :season AND r.round = :round
                AND r.ended_at IS NULL);

-- name: list_runs
-- A page of runs by their numbers, the newest first; how each stands is asked one by one.
SELECT r.id FROM match_runs r
WHERE (CAST(:before AS bigint) IS NULL OR r.id < :before)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:season AS integer) IS NULL OR r.season = :season)
  AND (CAST(:round AS integer) IS NULL OR r.round = :round)
ORDER BY r.id DESC LIMIT :n;

-- name: lock_run
-- Whoever changes what a run has waits here for the others who do.
UPDATE match_runs SET looks = looks WHERE id = :run RETURNING expected;

-- name: name_discovery
-- Which job looks for the matches of a run, and how often somebody did before.
UPDATE match_runs SET discovery = :job, looks = :looks
WHERE id = :run AND (discovery IS NULL OR looks = :looks - 1);

-- name: name_tasks
-- The jobs of a batch, each to its task: its payload says of which it is.
UPDATE match_tasks SET job = j.id
FROM jobs j, batches b
WHERE b.id = :batch AND j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id
  AND match_tasks.id = CAST(j.payload ->> 'task' AS bigint);

-- name: note_run
-- What the last look for the matches of a run came to.
UPDATE match_runs SET not_yet = :not_yet, error = :error, snapshot = :snapshot WHERE id = :run;

-- name: refused_fields
-- What pages were refused for, by site, code and field: how many wait for a person.
SELECT league, code, field, count(*), min(id) FROM (
    SELECT r.league, j.code, coalesce(t.error ->> 'field', t.error ->> 'selector', t.error ->> 'path', '') AS field, t.id
    FROM jobs j JOIN match_tasks t ON t.job = j.id JOIN match_runs r ON r.id = t.run
    WHERE j.state = 'dead' AND j.kind = 'matches.match' AND r.ended_at IS NULL AND t.partida IS NULL
      AND j.code IN ('LAYOUT_CHANGED', 'SCHEMA_INVALID', 'ROUND_SHORT')
    UNION ALL
    SELECT r.league, j.code, coalesce(r.error ->> 'field', r.error ->> 'selector', r.error ->> 'path', ''), r.id
    FROM jobs j JOIN match_runs r ON r.discovery = j.id
    WHERE j.state = 'dead' AND j.kind = 'matches.discovery' AND r.ended_at IS NULL
      AND j.code IN ('LAYOUT_CHANGED', 'SCHEMA_INVALID', 'ROUND_SHORT')) refused
GROUP BY league, code, field ORDER BY league, code, field LIMIT :n;

-- name: show_job
-- One run, as the document's table has it.
SELECT v.id, v.league, v.season, v.round, v.status, v.expected, v.stored, v.pending, v.running, v.not_yet,
       v.failed, v.left_out, v.dropped, v.listed, v.complete, v.discovery_state, v.discovery_code, v.error, v.snapshot,
       v.batch, v.discovery, v.created_by, v.created_at, v.completed_at, v.ended_at
FROM scrape_jobs v WHERE v.id = :run;
