-- The tasks of a run with the scores of those that are stored, in the order in which they were found.
SELECT v.id, v.job_id, v.league, v.season, v.round, v.match_key, v.home, v.away, v.url, v.kickoff, v.status,
       v.attempts, v.error_code, v.error, v.snapshot, v.not_yet, v.look_again_at, v.partida_id, v.job,
       v.created_at, v.dropped, p.home_score, p.away_score
FROM scrape_tasks v LEFT JOIN partidas p ON p.id = v.partida_id
WHERE v.job_id = :run ORDER BY v.id LIMIT :n;
