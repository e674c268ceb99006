-- What is told of a stored match now, in place of what was. Zero rows: somebody was quicker.
-- Twin: line-ups are json there, text here.
UPDATE partidas SET kickoff = :kickoff, stadium = :stadium, home_score = :home_score,
    away_score = :away_score, lineups = :lineups, walkover = :walkover, stored_by = :actor,
    stored_at = (SELECT clock()), revision = revision + 1
WHERE id = :partida AND revision = :revision
RETURNING revision;
