-- name: look_around
-- Whether there is anything to do for this runner, in one question: all that an idle one asks.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
WITH known AS MATERIALIZED (
    SELECT ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))) AS tags
), queues AS MATERIALIZED (
    SELECT queue FROM json_array_elements_text(CAST(:queues AS json)) AS q(queue)
), others AS MATERIALIZED (
    SELECT boot, pid, pid_started, host, lease_until FROM runners
    WHERE state IN ('alive', 'leaving') AND boot <> :boot
)
SELECT EXISTS (
           SELECT FROM known k CROSS JOIN queues q
           WHERE EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                           AND turn IS NOT NULL AND aside IS NULL AND lost < 2
                           AND kind || '@' || version = ANY(k.tags))
              OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                           AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
                           AND kind || '@' || version = ANY(k.tags))) AS waiting,
       EXISTS (SELECT FROM jobs WHERE state = 'waiting' AND aside IS NOT NULL AND aside >= '')
           AS aside,
       EXISTS (SELECT FROM jobs WHERE runner = :boot AND cancel_at >= started_at) AS cancels,
       EXISTS (SELECT FROM runners r JOIN jobs j ON j.runner = r.boot
               WHERE r.state IN ('lost', 'gone')) AS left_over,
       EXISTS (SELECT FROM duties d
               WHERE d.name = ANY(ARRAY(SELECT json_array_elements_text(CAST(:duties AS json))))
                 AND NOT EXISTS (SELECT FROM runners r
                                 WHERE r.boot = d.boot AND r.state = 'alive')) AS duty_free,
       (SELECT count(*) FROM duties WHERE boot = :boot) AS held,
       (SELECT json_agg(json_build_array(boot, pid, pid_started)) FROM others
        WHERE host = :host) AS beside,
       (SELECT min((SELECT min(run_at) FROM jobs WHERE queue = q.queue AND state = 'waiting'
                      AND turn IS NULL)) FROM queues q) AS due,
       (SELECT min(lease_until) FROM others) AS lease_ends,
       coalesce(
           (SELECT minute FROM tallies LIMIT 1), (SELECT at FROM charges LIMIT 1)) AS fold,
       (SELECT min(next_at) FROM schedules WHERE paused_at IS NULL) AS schedule,
       (SELECT value FROM meta WHERE name = 'pauses') AS pauses,
       (SELECT clock()) AS now;
