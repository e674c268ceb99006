-- Seasons of leagues of which something was scraped, the newest first.
SELECT DISTINCT league, season FROM match_runs
WHERE ended_at IS NULL AND (CAST(:league AS text) IS NULL OR league = :league)
  AND (CAST(:season AS integer) IS NULL OR season = :season)
ORDER BY season DESC, league LIMIT :n;
