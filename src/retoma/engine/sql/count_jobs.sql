-- How many jobs are in each state, of one batch or of all: folded counts and fresh tallies together.
SELECT state, sum(n) FROM (
    SELECT state, n FROM counts WHERE batch = coalesce(CAST(:batch AS bigint), -1)
    UNION ALL
    SELECT to_state, n FROM tallies WHERE CAST(:batch AS bigint) IS NULL OR batch = :batch
    UNION ALL
    SELECT from_state, -n FROM tallies
    WHERE from_state IS NOT NULL AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)) moves
GROUP BY state
HAVING sum(n) <> 0;
