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
