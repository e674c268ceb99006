-- Every match of the run is stored, for the first time.
UPDATE match_runs SET completed_at = (SELECT clock())
WHERE id = :run AND completed_at IS NULL
  AND expected = (SELECT count(*) FROM match_tasks t WHERE t.run = :run AND t.partida IS NOT NULL)
RETURNING league, season, round, expected;
