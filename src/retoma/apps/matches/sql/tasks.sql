-- name: count_dead
-- How many pages of dead tasks and discoveries of the last runs were kept, to be read again.
SELECT (SELECT count(*) FROM match_runs r JOIN match_tasks t ON t.run = r.id
        JOIN jobs j ON j.id = t.job AND j.state = 'dead'
        WHERE r.ended_at IS NULL AND t.partida IS NULL AND t.snapshot IS NOT NULL
          AND (CAST(:code AS text) IS NULL OR j.code = :code)
          AND (CAST(:league AS text) IS NULL OR r.league = :league)
          AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
          AND (CAST(:task AS bigint) IS NULL OR t.id = :task))
     + (SELECT count(*) FROM match_runs r JOIN jobs j ON j.id = r.discovery AND j.state = 'dead'
        WHERE r.ended_at IS NULL AND r.snapshot IS NOT NULL AND CAST(:task AS bigint) IS NULL
          AND (CAST(:code AS text) IS NULL OR j.code = :code)
          AND (CAST(:league AS text) IS NULL OR r.league = :league)
          AND (CAST(:run AS bigint) IS NULL OR r.id = :run));

-- name: date_task
-- The day of a match, as its own page says it now.
UPDATE match_tasks SET kickoff = :kickoff WHERE id = :task AND partida IS NULL;

-- name: dead_rounds
-- Last runs whose discovery is dead, and whose page was kept, to be read again.
SELECT r.id, r.league, r.season, r.round, r.snapshot, r.discovery, r.error
FROM match_runs r JOIN jobs j ON j.id = r.discovery AND j.state = 'dead'
WHERE r.ended_at IS NULL AND r.snapshot IS NOT NULL AND r.id > :after
  AND (CAST(:code AS text) IS NULL OR j.code = :code)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
ORDER BY r.id LIMIT :n;

-- name: dead_tasks
-- Dead tasks of the last runs whose page was kept, to be read again.
SELECT t.id, r.league, r.season, r.round, t.match_key, t.url, t.snapshot, t.job, t.error, t.kickoff
FROM match_runs r JOIN match_tasks t ON t.run = r.id
JOIN jobs j ON j.id = t.job AND j.state = 'dead'
WHERE r.ended_at IS NULL AND t.partida IS NULL AND t.snapshot IS NOT NULL AND t.id > :after
  AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
  AND (CAST(:code AS text) IS NULL OR j.code = :code)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
  AND (CAST(:task AS bigint) IS NULL OR t.id = :task)
ORDER BY t.id LIMIT :n;

-- name: list_tasks
-- A page of the tasks of a run, in the order in which they were found.
SELECT v.id, v.job_id, v.league, v.season, v.round, v.match_key, v.home, v.away, v.url, v.kickoff, v.status,
       v.attempts, v.error_code, v.error, v.snapshot, v.not_yet, v.look_again_at, v.partida_id, v.job,
       v.created_at, v.dropped
FROM scrape_tasks v
WHERE v.job_id = :run AND v.id > :after AND (CAST(:status AS text) IS NULL OR v.status = :status)
ORDER BY v.id LIMIT :n;

-- name: note_task
-- What the last try of a task came to: nothing yet, or what went wrong and with which page.
UPDATE match_tasks SET not_yet = :not_yet, error = :error, snapshot = :snapshot
WHERE id = :task AND partida IS NULL;

-- name: show_task
-- One task, as the document's table has it.
SELECT v.id, v.job_id, v.league, v.season, v.round, v.match_key, v.home, v.away, v.url, v.kickoff, v.status,
       v.attempts, v.error_code, v.error, v.snapshot, v.not_yet, v.look_again_at, v.partida_id, v.job,
       v.created_at, v.dropped
FROM scrape_tasks v WHERE v.id = :task;
