-- How many jobs are in each state by kind, of one batch or of all: counts and fresh tallies together.
SELECT kind, state, sum(n) FROM (
    SELECT kind, state, n FROM counts WHERE batch = coalesce(CAST(:batch AS bigint), -1)
    UNION ALL
    SELECT kind, to_state, n FROM tallies WHERE CAST(:batch AS bigint) IS NULL OR batch = :batch
    UNION ALL
    SELECT kind, from_state, -n FROM tallies
    WHERE from_state IS NOT NULL AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)) moves
GROUP BY kind, state
HAVING sum(n) <> 0;
