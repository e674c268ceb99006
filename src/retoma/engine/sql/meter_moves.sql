-- All that is tallied, at one instant: where jobs are, what ever happened to each kind, what each runner did.
-- Folded and fresh together. It grows with kinds, codes and runners, not with jobs.
SELECT 'state' AS what, kind AS whose, state AS event, code, -1 AS bucket, sum(n), 0.0 FROM (
    SELECT kind, state, code, n FROM counts WHERE batch = -1
    UNION ALL
    SELECT kind, to_state, CASE WHEN to_state = 'dead' THEN coalesce(code, '') ELSE '' END, n
    FROM tallies
    UNION ALL
    SELECT kind, from_state, CASE WHEN from_state = 'dead' THEN coalesce(code, '') ELSE '' END, -n
    FROM tallies WHERE from_state IS NOT NULL) moves
GROUP BY kind, state, code
HAVING sum(n) <> 0
UNION ALL
SELECT 'kind', kind, event, '', bucket, sum(n), sum(ms) FROM (
    SELECT kind, event, bucket, n, ms FROM totals
    UNION ALL
    SELECT kind, event, coalesce(bucket, -1), n, coalesce(ms, 0) FROM tallies
    WHERE event IS NOT NULL) happened
GROUP BY kind, event, bucket
UNION ALL
SELECT 'runner', boot, event, '', -1, sum(n), sum(ms) FROM (
    SELECT boot, event, n, ms FROM runner_totals
    UNION ALL
    SELECT runner, event, n, coalesce(ms, 0) FROM tallies
    WHERE runner IS NOT NULL AND event IS NOT NULL) did
GROUP BY boot, event;
