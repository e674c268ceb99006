-- The current runs of a round and its neighbours.
SELECT round, id FROM match_runs
WHERE league = :league AND season = :season AND round BETWEEN :round - 1 AND :round + 1
  AND ended_at IS NULL
ORDER BY round;
