-- name: meter_held
-- How many jobs of each kind run at which checkpoint, and how many of those do not move.
-- Bounded by slots; history is not read.
SELECT kind, coalesce(checkpoint, ''), count(*), sum(still) FROM (
    SELECT j.kind, j.checkpoint,
           CASE WHEN r.boot IS NULL OR r.state NOT IN ('alive', 'leaving')
                  OR r.lease_until < (SELECT clock())
                  OR j.started_at < (SELECT clock_in(-CAST(:quiet AS double precision)))
                     AND (j.progress_at IS NULL
                          OR j.progress_at < (SELECT clock_in(-CAST(:quiet AS double precision))))
                THEN 1 ELSE 0 END AS still
    FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
    WHERE j.runner > '') held
GROUP BY kind, coalesce(checkpoint, '');

-- name: meter_limits
-- How many run under each limit, and how many may: those of whole kinds first, others as far as there is room.
SELECT key, coalesce(by_hand, cap), used FROM (
    SELECT key, by_hand, cap, used FROM limits WHERE key >= 'kind:' AND key < 'kind;'
    ORDER BY key LIMIT :most) own
UNION ALL
SELECT key, coalesce(by_hand, cap), used FROM (
    SELECT key, by_hand, cap, used FROM limits WHERE key < 'kind:' OR key >= 'kind;'
    ORDER BY key LIMIT :most) others;

-- name: meter_lines
-- Who stands first in each line of jobs that are due, and since when; a line is a queue and a priority.
-- Each step of the recursions looks up the next line in an index, whatever number of jobs stand in it.
-- Turns decide who is first, and follow the age only roughly: the oldest of the first few is told.
WITH RECURSIVE queues (queue, place) AS (
    SELECT (SELECT min(queue) FROM jobs
            WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2), 1
    UNION ALL
    SELECT (SELECT min(j.queue) FROM jobs j
            WHERE j.queue > q.queue
              AND j.state = 'waiting' AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost < 2),
           q.place + 1
    FROM queues q WHERE q.queue IS NOT NULL AND q.place < :most
), lines (queue, priority) AS (
    SELECT q.queue, (SELECT min(j.priority) FROM jobs j
                     WHERE j.queue = q.queue AND j.state = 'waiting' AND j.turn IS NOT NULL
                       AND j.aside IS NULL AND j.lost < 2)
    FROM queues q WHERE q.queue IS NOT NULL
    UNION ALL
    SELECT l.queue, (SELECT min(j.priority) FROM jobs j
                     WHERE j.queue = l.queue AND j.priority > l.priority AND j.state = 'waiting'
                       AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost < 2)
    FROM lines l WHERE l.priority IS NOT NULL
), suspects (queue, place) AS (
    SELECT (SELECT min(queue) FROM jobs
            WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2), 1
    UNION ALL
    SELECT (SELECT min(j.queue) FROM jobs j
            WHERE j.queue > q.queue
              AND j.state = 'waiting' AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost >= 2),
           q.place + 1
    FROM suspects q WHERE q.queue IS NOT NULL AND q.place < :most
), later (queue, place) AS (
    SELECT (SELECT min(queue) FROM jobs WHERE state = 'waiting' AND turn IS NULL), 1
    UNION ALL
    SELECT (SELECT min(j.queue) FROM jobs j
            WHERE j.queue > q.queue AND j.state = 'waiting' AND j.turn IS NULL), q.place + 1
    FROM later q WHERE q.queue IS NOT NULL AND q.place < :most
)
SELECT l.queue, (SELECT min(since) FROM (
           SELECT CASE WHEN j.run_at > j.created_at THEN j.run_at ELSE j.created_at END AS since
           FROM jobs j
           WHERE j.queue = l.queue AND j.priority = l.priority AND j.state = 'waiting'
             AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost < 2
           ORDER BY j.turn, j.id LIMIT 20) few) AS since,
       (SELECT j.kind || '@' || j.version FROM jobs j
        WHERE j.queue = l.queue AND j.priority = l.priority AND j.state = 'waiting'
          AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost < 2
        ORDER BY j.turn, j.id LIMIT 1) AS tag
FROM lines l WHERE l.priority IS NOT NULL
UNION ALL
SELECT s.queue, (SELECT min(since) FROM (
           SELECT CASE WHEN j.run_at > j.created_at THEN j.run_at ELSE j.created_at END AS since
           FROM jobs j
           WHERE j.queue = s.queue AND j.state = 'waiting'
             AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost >= 2
           ORDER BY j.priority, j.turn, j.id LIMIT 20) few),
       (SELECT j.kind || '@' || j.version FROM jobs j
        WHERE j.queue = s.queue AND j.state = 'waiting'
          AND j.turn IS NOT NULL AND j.aside IS NULL AND j.lost >= 2
        ORDER BY j.priority, j.turn, j.id LIMIT 1)
FROM suspects s WHERE s.queue IS NOT NULL
UNION ALL
SELECT due.queue, due.since, due.tag FROM (
    SELECT l.queue, (SELECT CASE WHEN j.run_at > j.created_at THEN j.run_at ELSE j.created_at END
                     FROM jobs j
                     WHERE j.queue = l.queue AND j.state = 'waiting' AND j.turn IS NULL
                       AND j.run_at <= (SELECT clock()) AND j.aside IS NULL
                     ORDER BY j.run_at LIMIT 1) AS since,
           (SELECT j.kind || '@' || j.version FROM jobs j
            WHERE j.queue = l.queue AND j.state = 'waiting' AND j.turn IS NULL
              AND j.run_at <= (SELECT clock()) AND j.aside IS NULL
            ORDER BY j.run_at LIMIT 1) AS tag
    FROM later l WHERE l.queue IS NOT NULL) due
WHERE due.since IS NOT NULL;

-- name: meter_moves
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

-- name: meter_pools
-- How many things of each pool are off, held, free, or resting: on, and not to be held just now.
SELECT pool, stands, count(*) FROM (
    SELECT i.pool,
           CASE WHEN i.state = 'off' THEN 'off'
                WHEN i.scope = 'release'
                  OR i.scope = 'attempt' AND EXISTS (
                      SELECT 1 FROM jobs j
                      WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
                  OR i.scope = 'job' AND EXISTS (
                      SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
                        AND j.state IN ('waiting', 'running', 'parked')) THEN 'held'
                WHEN i.ready_at > (SELECT clock()) OR i.uses >= p.use_cap THEN 'resting'
                ELSE 'free' END AS stands
    FROM pool_items i JOIN pools p ON p.name = i.pool) things
GROUP BY pool, stands;
