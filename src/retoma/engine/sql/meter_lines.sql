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
