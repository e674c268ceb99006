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
