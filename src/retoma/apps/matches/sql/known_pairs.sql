-- Who plays whom in a round as far as this run and earlier ones have found it, without what was dropped.
SELECT DISTINCT t.match_key, t.home, t.away
FROM match_runs r
JOIN match_runs o ON o.league = r.league AND o.season = r.season AND o.round = r.round AND o.id <= r.id
JOIN match_tasks t ON t.run = o.id
WHERE r.id = :run
  AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
ORDER BY t.match_key;
