-- A page of matches that are stored, by their number.
SELECT p.id, p.league, p.season, p.round, p.home, h.name, p.away, a.name, p.status, p.kickoff, p.stadium,
       p.home_score, p.away_score, p.url, p.stored_by, p.stored_at, p.walkover, p.revision
FROM partidas p
LEFT JOIN times h ON h.league = p.league AND h.key = p.home
LEFT JOIN times a ON a.league = p.league AND a.key = p.away
WHERE p.id > :after AND (CAST(:league AS text) IS NULL OR p.league = :league)
  AND (CAST(:season AS integer) IS NULL OR p.season = :season)
  AND (CAST(:round AS integer) IS NULL OR p.round = :round)
  AND (CAST(:team AS text) IS NULL OR p.home = :team OR p.away = :team)
ORDER BY p.id LIMIT :n;
