-- A page of runs by their numbers, the newest first; how each stands is asked one by one.
SELECT r.id FROM match_runs r
WHERE (CAST(:before AS bigint) IS NULL OR r.id < :before)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:season AS integer) IS NULL OR r.season = :season)
  AND (CAST(:round AS integer) IS NULL OR r.round = :round)
ORDER BY r.id DESC LIMIT :n;
