-- How many matches a run has: its tasks, and no fewer than the round has.
-- The round has as many as its league or a person says. What was dropped is not counted; what was added is not stored.
UPDATE match_runs SET expected = nullif(max_of.n, 0), batch = coalesce(batch, :batch), not_yet = NULL, error = NULL,
    snapshot = NULL, completed_at = CASE WHEN CAST(:batch AS bigint) IS NULL
        AND max_of.n = coalesce(match_runs.expected, max_of.n) THEN completed_at END
FROM (SELECT CASE WHEN count(*) > CAST(:size AS integer) THEN count(*) ELSE CAST(:size AS integer) END AS n
      FROM match_tasks t JOIN match_runs r ON r.id = t.run
      WHERE t.run = :run
        AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                        AND x.round = r.round AND x.match_key = t.match_key)) max_of
WHERE id = :run
RETURNING expected;
