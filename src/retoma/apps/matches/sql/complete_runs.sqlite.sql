-- Every match of these runs is stored, for the first time.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
UPDATE match_runs SET completed_at = (SELECT clock())
WHERE id IN (SELECT value FROM json_each(:runs)) AND completed_at IS NULL
  AND expected = (SELECT count(*) FROM match_tasks t WHERE t.run = match_runs.id AND t.partida IS NOT NULL)
RETURNING id, league, season, round, expected;
