-- Add what was tallied to the counters: a reader who adds both is right at every instant.
-- Twin: one statement here, several there. One folder at a time, or two could lock each other out.
-- Ledger -1 is that of all batches together, 0 that of jobs without one.
WITH folded AS (
    DELETE FROM tallies WHERE id IN (
        SELECT id FROM tallies
        WHERE (SELECT pg_try_advisory_xact_lock(5918112848)) ORDER BY id LIMIT 10000)
    RETURNING runner, batch, kind, from_state, to_state, event, code, minute, bucket, n, ms
), moves AS (
    SELECT coalesce(batch, 0) AS batch, kind, to_state AS state,
           CASE WHEN to_state = 'dead' THEN coalesce(code, '') ELSE '' END AS code, n
    FROM folded
    UNION ALL
    SELECT coalesce(batch, 0), kind, from_state,
           CASE WHEN from_state = 'dead' THEN coalesce(code, '') ELSE '' END, -n
    FROM folded WHERE from_state IS NOT NULL
), counted AS (
    INSERT INTO counts AS c (batch, kind, state, code, n)
    SELECT ledger.batch, kind, state, code, sum(n)
    FROM moves CROSS JOIN LATERAL (VALUES (moves.batch), (-1)) AS ledger(batch)
    GROUP BY ledger.batch, kind, state, code
    ORDER BY ledger.batch, kind, state, code
    ON CONFLICT (batch, kind, state, code) DO UPDATE SET n = c.n + excluded.n
), paced AS (
    INSERT INTO pace AS p (kind, minute, state, code, bucket, n, ms)
    SELECT kind, minute, to_state, coalesce(code, ''), coalesce(bucket, -1), sum(n),
           coalesce(sum(ms), 0)
    FROM folded GROUP BY kind, minute, to_state, coalesce(code, ''), coalesce(bucket, -1)
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (kind, minute, state, code, bucket)
        DO UPDATE SET n = p.n + excluded.n, ms = p.ms + excluded.ms
), batch_paced AS (
    INSERT INTO batch_pace AS p (batch, minute, n)
    SELECT batch, minute, sum(n) FROM folded
    WHERE batch IS NOT NULL AND to_state IN ('done', 'skipped', 'dead', 'canceled')
    GROUP BY batch, minute
    ORDER BY batch, minute
    ON CONFLICT (batch, minute) DO UPDATE SET n = p.n + excluded.n
), totaled AS (
    INSERT INTO totals AS t (kind, event, bucket, n, ms)
    SELECT kind, event, coalesce(bucket, -1), sum(n), coalesce(sum(ms), 0) FROM folded
    WHERE event IS NOT NULL
    GROUP BY kind, event, coalesce(bucket, -1)
    ORDER BY 1, 2, 3
    ON CONFLICT (kind, event, bucket)
        DO UPDATE SET n = t.n + excluded.n, ms = t.ms + excluded.ms
), by_runner AS (
    INSERT INTO runner_totals AS t (boot, event, n, ms)
    SELECT runner, event, sum(n), coalesce(sum(ms), 0) FROM folded
    WHERE runner IS NOT NULL AND event IS NOT NULL
    GROUP BY runner, event
    ORDER BY 1, 2
    ON CONFLICT (boot, event) DO UPDATE SET n = t.n + excluded.n, ms = t.ms + excluded.ms
), by_kind AS (
    INSERT INTO runner_kinds AS t (boot, kind, event, n, ms)
    SELECT runner, kind, event, sum(n), coalesce(sum(ms), 0) FROM folded
    WHERE runner IS NOT NULL AND event IS NOT NULL
    GROUP BY runner, kind, event
    ORDER BY 1, 2, 3
    ON CONFLICT (boot, kind, event)
        DO UPDATE SET n = t.n + excluded.n, ms = t.ms + excluded.ms
)
SELECT batch FROM folded;
