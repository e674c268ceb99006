-- Every match of these runs is stored, each as one of this league, season and round (R3).
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
UPDATE match_runs r SET completed_at = (SELECT clock()), completions = completions + 1
FROM (SELECT CAST(json_array_elements_text(CAST(:runs AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
WHERE r.id = n.id AND r.completed_at IS NULL
  AND r.expected = (
      SELECT count(*) FROM match_tasks t JOIN partidas p ON p.id = t.partida
      WHERE t.run = r.id AND p.league = r.league AND p.season = r.season AND p.round = r.round
        AND p.home = t.home AND p.away = t.away)
RETURNING r.id, r.league, r.season, r.round, r.expected, r.completions;
