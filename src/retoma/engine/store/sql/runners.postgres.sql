-- name: fold_tallies
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

-- name: take_back_jobs
-- Take back what lost runners held, a bite at a time. The epoch stays; the next claim adds one.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- A third loss in a row fails a suspect permanently as poison, if its runner held `few` jobs at most; beside
-- more only loss number `most` does: whose fault such a death is nobody knows. A job to be canceled is not retried.
-- Suspects first: of a runner whose jobs come back in several slices the first slice has all of them to count.
-- Unless remote work of it may live: that is stopped first, and what would be buried is parked.
-- From runners to jobs, in that order: with ORDER BY id the planner walks the whole history.
WITH absent AS MATERIALIZED (
    SELECT r.boot, r.state, (
               SELECT count(*) FROM (
                   SELECT 1 FROM jobs h WHERE h.runner = r.boot LIMIT CAST(:few AS integer) + 1) held
           ) <= CAST(:few AS integer) AS few
    FROM runners r WHERE r.state IN ('lost', 'gone')
), left_over AS MATERIALIZED (
    SELECT h.id, h.cancel_at IS NOT NULL AND NOT r.remote AS canceled,
           a.state = 'lost' AS lost, r.remote,
           a.state = 'lost' AND h.lost >= CASE WHEN a.few THEN 2 ELSE CAST(:most AS integer) - 1 END AS last
    FROM absent a CROSS JOIN LATERAL (
        SELECT id, cancel_at, lost FROM jobs WHERE runner = a.boot
        ORDER BY lost DESC
        LIMIT :bite FOR UPDATE SKIP LOCKED
    ) h CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT 1 FROM steps s
            WHERE s.job = h.id AND s.name >= 'remote:' AND s.name < 'remote;'
              AND s.state IN ('begun', 'saved')) AS remote
    ) r
    LIMIT :bite
), back AS (
    UPDATE jobs j SET
        state = CASE WHEN l.canceled THEN 'canceled' WHEN NOT l.last THEN 'waiting'
                     WHEN l.remote THEN 'parked' ELSE 'dead' END,
        reason = CASE WHEN l.canceled OR NOT l.last THEN NULL
                      WHEN l.remote THEN 'unknown_remote' ELSE 'poison' END,
        code = CASE WHEN NOT l.canceled AND l.last THEN 'poison' END,
        lost = j.lost + CASE WHEN l.lost THEN 1 ELSE 0 END,
        released = j.released + CASE WHEN l.lost THEN 0 ELSE 1 END,
        failures = j.failures - 1, seq = j.seq + 1, runner = NULL, turn = NULL,
        run_at = (SELECT clock()),
        ended_at = CASE WHEN l.canceled OR l.last AND NOT l.remote THEN (SELECT clock()) END
    FROM left_over l
    WHERE j.id = l.id AND j.state = 'running'
    RETURNING j.id, j.epoch, j.seq, j.batch, j.kind, j.queue, j.limit_key, j.state, j.code,
        CASE j.state WHEN 'dead' THEN 'buried'
                     WHEN 'waiting' THEN CASE WHEN l.lost THEN 'lost' ELSE 'released' END
                     ELSE j.state END AS event
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT id, seq, epoch, event, (SELECT clock()), :actor,
           CAST(CASE event WHEN 'buried' THEN '{"reason":"poison","code":"poison"}'
                           WHEN 'parked' THEN
               '{"reason":"unknown_remote","why":"its runners died while its remote work may run"}'
               END AS json)
    FROM back
), tallied AS (
    INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, code, minute, n)
    SELECT :actor, batch, kind, 'running', state,
           CASE event WHEN 'buried' THEN 'poisoned' ELSE event END,
           CASE WHEN state = 'dead' THEN code END,
           date_trunc('minute', (SELECT clock())),
           count(*)
    FROM back GROUP BY batch, kind, state, event, 7
)
SELECT id, epoch, state, queue, limit_key FROM back;

-- name: tell_finished
-- Tell of batches whose last open job has ended, of those just folded. Once for each finishing.
-- Twin: an object of counts is made by json_object_agg here, by json_group_object there.
-- A batch with tallies still to be folded is left to the next fold, which will meet it again.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, 'batch.finished', CAST(counted.batch AS text),
       json_object_agg(counted.state, counted.n ORDER BY counted.state) FILTER (WHERE counted.n <> 0)
FROM (
    SELECT c.batch, c.state, sum(c.n) AS n
    FROM counts c JOIN json_each(:batches) touched ON c.batch = CAST(touched.key AS bigint)
    WHERE NOT EXISTS (SELECT FROM tallies t WHERE t.batch = c.batch)
    GROUP BY c.batch, c.state) counted
GROUP BY counted.batch
HAVING sum(CASE WHEN counted.state IN ('waiting', 'running', 'parked')
                THEN abs(counted.n) ELSE 0 END) = 0
   AND sum(counted.n) > 0
RETURNING subject, details;
