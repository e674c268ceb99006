-- name: durations
-- How long attempts that ended in a state took, by powers of two of a millisecond.
SELECT kind, bucket, sum(n), sum(ms) FROM (
    SELECT p.kind, p.bucket, p.n, p.ms
    FROM (SELECT DISTINCT kind FROM counts WHERE batch = -1) k
    JOIN pace p ON p.kind = k.kind AND p.minute >= (SELECT clock_in(-CAST(:seconds AS double precision)))
    WHERE p.state = :state
    UNION ALL
    SELECT kind, coalesce(bucket, -1), n, coalesce(ms, 0) FROM tallies
    WHERE to_state = :state
      AND minute >= (SELECT clock_in(-CAST(:seconds AS double precision)))) ended
WHERE bucket >= 0 AND (CAST(:kind AS text) IS NULL OR kind = :kind)
GROUP BY kind, bucket
ORDER BY kind, bucket;

-- name: throughput
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
