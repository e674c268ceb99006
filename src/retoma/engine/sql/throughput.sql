-- How many jobs came to which state in each of the last minutes: folded and fresh together.
SELECT minute, kind, state, sum(n) FROM (
    SELECT p.minute, p.kind, p.state, p.n
    FROM (SELECT DISTINCT kind FROM counts WHERE batch = -1) k
    JOIN pace p ON p.kind = k.kind AND p.minute >= (SELECT clock_in(-CAST(:seconds AS double precision)))
    UNION ALL
    SELECT minute, kind, to_state, n FROM tallies
    WHERE minute >= (SELECT clock_in(-CAST(:seconds AS double precision)))) moves
WHERE CAST(:kind AS text) IS NULL OR kind = :kind
GROUP BY minute, kind, state
ORDER BY minute, kind, state;
