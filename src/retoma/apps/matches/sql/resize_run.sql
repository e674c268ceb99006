-- How many matches a run has now that a person has said something of its round.
-- A run that knew none stays so.
UPDATE match_runs SET expected = nullif(max_of.n, 0),
    completed_at = CASE WHEN max_of.n = expected THEN completed_at END
FROM (SELECT CASE WHEN count(*) > CAST(:size AS integer) THEN count(*) ELSE CAST(:size AS integer) END AS n
      FROM match_tasks t JOIN match_runs r ON r.id = t.run
      WHERE t.run = :run
        AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                        AND x.round = r.round AND x.match_key = t.match_key)) max_of
WHERE id = :run AND expected IS NOT NULL AND max_of.n > 0
RETURNING expected;
