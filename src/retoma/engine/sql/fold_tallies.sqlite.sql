-- Add what was tallied to the counters: a reader who adds both is right at every instant.
-- Twin: several statements here, one there.
-- Ledger -1 is that of all batches together, 0 that of jobs without one.
INSERT INTO counts (batch, kind, state, code, n)
SELECT CASE WHEN each.whole THEN -1 ELSE moves.batch END AS ledger, kind, state, code, sum(n)
FROM (
    SELECT coalesce(batch, 0) AS batch, kind, to_state AS state,
           CASE WHEN to_state = 'dead' THEN coalesce(code, '') ELSE '' END AS code, n
    FROM tallies
    UNION ALL
    SELECT coalesce(batch, 0), kind, from_state,
           CASE WHEN from_state = 'dead' THEN coalesce(code, '') ELSE '' END, -n
    FROM tallies WHERE from_state IS NOT NULL) moves
JOIN (SELECT false AS whole UNION ALL SELECT true) each
GROUP BY ledger, kind, state, code
ON CONFLICT (batch, kind, state, code) DO UPDATE SET n = n + excluded.n;

INSERT INTO pace (kind, minute, state, code, bucket, n, ms)
SELECT kind, minute, to_state, coalesce(code, ''), coalesce(bucket, -1), sum(n),
       coalesce(sum(ms), 0)
FROM tallies
WHERE true
GROUP BY kind, minute, to_state, coalesce(code, ''), coalesce(bucket, -1)
ON CONFLICT (kind, minute, state, code, bucket)
    DO UPDATE SET n = n + excluded.n, ms = ms + excluded.ms;

INSERT INTO batch_pace (batch, minute, n)
SELECT batch, minute, sum(n) FROM tallies
WHERE batch IS NOT NULL AND to_state IN ('done', 'skipped', 'dead', 'canceled')
GROUP BY batch, minute
ON CONFLICT (batch, minute) DO UPDATE SET n = n + excluded.n;

INSERT INTO totals (kind, event, bucket, n, ms)
SELECT kind, event, coalesce(bucket, -1), sum(n), coalesce(sum(ms), 0) FROM tallies
WHERE event IS NOT NULL
GROUP BY kind, event, coalesce(bucket, -1)
ON CONFLICT (kind, event, bucket) DO UPDATE SET n = n + excluded.n, ms = ms + excluded.ms;

INSERT INTO runner_totals (boot, event, n, ms)
SELECT runner, event, sum(n), coalesce(sum(ms), 0) FROM tallies
WHERE runner IS NOT NULL AND event IS NOT NULL
GROUP BY runner, event
ON CONFLICT (boot, event) DO UPDATE SET n = n + excluded.n, ms = ms + excluded.ms;

INSERT INTO runner_kinds (boot, kind, event, n, ms)
SELECT runner, kind, event, sum(n), coalesce(sum(ms), 0) FROM tallies
WHERE runner IS NOT NULL AND event IS NOT NULL
GROUP BY runner, kind, event
ON CONFLICT (boot, kind, event) DO UPDATE SET n = n + excluded.n, ms = ms + excluded.ms;

DELETE FROM tallies RETURNING batch;
