-- name: list_cells
-- The tasks of a run with the scores of those that are stored, in the order in which they were found.
SELECT v.id, v.job_id, v.league, v.season, v.round, v.match_key, v.home, v.away, v.url, v.kickoff, v.status,
       v.attempts, v.error_code, v.error, v.snapshot, v.not_yet, v.look_again_at, v.partida_id, v.job,
       v.created_at, v.dropped, p.home_score, p.away_score
FROM scrape_tasks v LEFT JOIN partidas p ON p.id = v.partida_id
WHERE v.job_id = :run ORDER BY v.id LIMIT :n;

-- name: list_seasons
-- Seasons of leagues of which something was scraped, the newest first.
SELECT DISTINCT league, season FROM match_runs
WHERE ended_at IS NULL AND (CAST(:league AS text) IS NULL OR league = :league)
  AND (CAST(:season AS integer) IS NULL OR season = :season)
ORDER BY season DESC, league LIMIT :n;

-- name: near_runs
-- The current runs of a round and its neighbours.
SELECT round, id FROM match_runs
WHERE league = :league AND season = :season AND round BETWEEN :round - 1 AND :round + 1
  AND ended_at IS NULL
ORDER BY round;

-- name: season_jobs
-- How the current runs of a season stand, as the document's table has them.
SELECT v.id, v.league, v.season, v.round, v.status, v.expected, v.stored, v.pending, v.running, v.not_yet,
       v.failed, v.left_out, v.dropped, v.listed, v.complete, v.discovery_state, v.discovery_code, v.error, v.snapshot,
       v.batch, v.discovery, v.created_by, v.created_at, v.completed_at, v.ended_at
FROM scrape_jobs v
WHERE v.league = :league AND v.season = :season AND v.ended_at IS NULL ORDER BY v.round;
