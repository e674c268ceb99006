-- A page of the tasks of a run, in the order in which they were found.
SELECT v.id, v.job_id, v.league, v.season, v.round, v.match_key, v.home, v.away, v.url, v.kickoff, v.status,
       v.attempts, v.error_code, v.error, v.snapshot, v.not_yet, v.look_again_at, v.partida_id, v.job,
       v.created_at, v.dropped
FROM scrape_tasks v
WHERE v.job_id = :run AND v.id > :after AND (CAST(:status AS text) IS NULL OR v.status = :status)
ORDER BY v.id LIMIT :n;
