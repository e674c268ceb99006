-- name: delete_events
-- What happened in a match is told anew, or no longer.
DELETE FROM partida_eventos WHERE partida = :partida;

-- name: delete_match
-- A stored match is one no longer. Zero rows: somebody was quicker.
DELETE FROM partidas WHERE id = :partida AND revision = :revision RETURNING id;

-- name: delete_statistics
-- What was counted in a match is told anew, or no longer.
DELETE FROM partida_estatisticas WHERE partida = :partida;

-- name: find_match
-- A match that is stored, by who played it.
SELECT id FROM partidas
WHERE league = :league AND season = :season AND round = :round AND home = :home AND away = :away;

-- name: list_matches
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

-- name: match_events
-- What happened in a match, in its order.
SELECT minute, added, side, kind, player, other FROM partida_eventos WHERE partida = :partida ORDER BY n;

-- name: match_statistics
-- What was counted in a match.
SELECT name, home, away FROM partida_estatisticas WHERE partida = :partida ORDER BY name;

-- name: show_match
-- One match that is stored.
SELECT p.id, p.league, p.season, p.round, p.home, h.name, p.away, a.name, p.status, p.kickoff, p.stadium,
       p.home_score, p.away_score, p.url, p.stored_by, p.stored_at, p.walkover, p.revision, p.lineups
FROM partidas p
LEFT JOIN times h ON h.league = p.league AND h.key = p.home
LEFT JOIN times a ON a.league = p.league AND a.key = p.away
WHERE p.id = :partida;
