-- One match that is stored.
SELECT p.id, p.league, p.season, p.round, p.home, h.name, p.away, a.name, p.status, p.kickoff, p.stadium,
       p.home_score, p.away_score, p.url, p.stored_by, p.stored_at, p.walkover, p.revision, p.lineups
FROM partidas p
LEFT JOIN times h ON h.league = p.league AND h.key = p.home
LEFT JOIN times a ON a.league = p.league AND a.key = p.away
WHERE p.id = :partida;
