-- Dead tasks of the last runs whose page was kept, to be read again.
SELECT t.id, r.league, t.match_key, t.url, t.snapshot, t.job, r.season, r.round, t.error, t.kickoff
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
