-- name: count_codes
-- How many jobs are dead by which code, of one batch or of all: counts and fresh tallies together.
SELECT code, sum(n) FROM (
    SELECT code, n FROM counts
    WHERE batch = coalesce(CAST(:batch AS bigint), -1) AND state = 'dead'
    UNION ALL
    SELECT coalesce(code, ''), n FROM tallies
    WHERE to_state = 'dead' AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT coalesce(code, ''), -n FROM tallies
    WHERE from_state = 'dead' AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)) moves
GROUP BY code
HAVING sum(n) <> 0
ORDER BY sum(n) DESC, code;

-- name: count_jobs
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

-- name: count_kinds
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
