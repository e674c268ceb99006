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
