-- name: fold_tallies
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

-- name: take_back_jobs
-- Take back what lost runners held, a bite at a time. The epoch stays; the next claim adds one.
-- Twin: SQLite has no data-modifying CTE; what is taken back stands in a temp table first.
-- A third loss in a row fails a suspect permanently as poison, if its runner held `few` jobs at most; beside
-- more only loss number `most` does: whose fault such a death is nobody knows. A job to be canceled is not retried.
-- Suspects first: of a runner whose jobs come back in several slices the first slice has all of them to count.
-- Unless remote work of it may live: that is stopped first, and what would be buried is parked.
CREATE TEMP TABLE IF NOT EXISTS back (
    job integer, epoch integer, seq integer, event text, state text, batch integer,
    kind text, lost integer, released integer);

DELETE FROM temp.back;

INSERT INTO temp.back
SELECT h.id, h.epoch, h.seq + 1,
       CASE WHEN h.cancel_at IS NOT NULL AND NOT h.remote THEN 'canceled'
            WHEN h.runner_state = 'gone' THEN 'released'
            WHEN h.lost < h.bound THEN 'lost'
            WHEN h.remote THEN 'parked' ELSE 'buried' END,
       CASE WHEN h.cancel_at IS NOT NULL AND NOT h.remote THEN 'canceled'
            WHEN h.runner_state = 'gone' OR h.lost < h.bound THEN 'waiting'
            WHEN h.remote THEN 'parked' ELSE 'dead' END,
       h.batch, h.kind, h.lost + (h.runner_state = 'lost'), h.released + (h.runner_state = 'gone')
FROM (
    SELECT j.*, r.state AS runner_state, EXISTS (
               SELECT 1 FROM steps s
               WHERE s.job = j.id AND s.name >= 'remote:' AND s.name < 'remote;'
                 AND s.state IN ('begun', 'saved')) AS remote,
           CASE WHEN (SELECT count(*) FROM (
                          SELECT 1 FROM jobs h WHERE h.runner = r.boot LIMIT CAST(:few AS integer) + 1)
                     ) <= CAST(:few AS integer)
                THEN 2 ELSE CAST(:most AS integer) - 1 END AS bound
    FROM runners r CROSS JOIN jobs j ON j.runner = r.boot
    WHERE r.state IN ('lost', 'gone') AND j.runner IS NOT NULL AND j.state = 'running'
    ORDER BY j.lost DESC, j.id LIMIT :bite
) h;

INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT job, seq, epoch, event, (SELECT clock()), :actor,
       CASE event WHEN 'buried' THEN '{"reason":"poison","code":"poison"}'
                  WHEN 'parked' THEN
           '{"reason":"unknown_remote","why":"its runners died while its remote work may run"}' END
FROM temp.back;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, code, minute, n)
SELECT :actor, batch, kind, 'running', state,
       CASE event WHEN 'buried' THEN 'poisoned' ELSE event END,
       CASE WHEN state = 'dead' THEN 'poison' END,
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM temp.back GROUP BY batch, kind, state, event;

UPDATE jobs SET state = b.state,
    reason = CASE b.state WHEN 'dead' THEN 'poison' WHEN 'parked' THEN 'unknown_remote' END,
    code = CASE WHEN b.state IN ('dead', 'parked') THEN 'poison' END, lost = b.lost, released = b.released,
    failures = failures - 1, seq = b.seq, runner = NULL, turn = NULL, run_at = (SELECT clock()),
    ended_at = CASE WHEN b.state IN ('dead', 'canceled') THEN (SELECT clock()) END
FROM temp.back b
WHERE jobs.id = b.job AND jobs.epoch = b.epoch
RETURNING id, jobs.epoch, jobs.state, queue, limit_key;

-- name: tell_finished
-- Tell of batches whose last open job has ended, of those just folded. Once for each finishing.
-- Twin: an object of counts is made by json_object_agg there, by json_group_object here.
-- A batch with tallies still to be folded is left to the next fold, which will meet it again.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, 'batch.finished', CAST(counted.batch AS text),
       json_group_object(counted.state, counted.n ORDER BY counted.state) FILTER (WHERE counted.n <> 0)
FROM (
    SELECT c.batch, c.state, sum(c.n) AS n
    FROM json_each(:batches) touched CROSS JOIN counts c ON c.batch = CAST(touched.key AS integer)
    WHERE NOT EXISTS (SELECT 1 FROM tallies t WHERE t.batch = c.batch)
    GROUP BY c.batch, c.state) counted
GROUP BY counted.batch
HAVING sum(CASE WHEN counted.state IN ('waiting', 'running', 'parked')
                THEN abs(counted.n) ELSE 0 END) = 0
   AND sum(counted.n) > 0
RETURNING subject, details;
