-- Every match of these runs is stored, each as one of this league, season and round (R3).
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
UPDATE match_runs SET completed_at = (SELECT clock()), completions = completions + 1
WHERE id IN (SELECT value FROM json_each(:runs)) AND completed_at IS NULL
  AND match_runs.expected = (
      SELECT count(*) FROM match_tasks t JOIN partidas p ON p.id = t.partida
      WHERE t.run = match_runs.id AND p.league = match_runs.league AND p.season = match_runs.season AND p.round = match_runs.round
        AND p.home = t.home AND p.away = t.away)
RETURNING id, league, season, round, expected, completions;
