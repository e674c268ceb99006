-- Every match of these runs is stored, for the first time.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
UPDATE match_runs r SET completed_at = (SELECT clock())
FROM (SELECT CAST(json_array_elements_text(CAST(:runs AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
WHERE r.id = n.id AND r.completed_at IS NULL
  AND r.expected = (SELECT count(*) FROM match_tasks t WHERE t.run = r.id AND t.partida IS NOT NULL)
RETURNING r.id, r.league, r.season, r.round, r.expected;
