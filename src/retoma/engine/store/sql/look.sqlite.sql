-- name: look_around
-- Whether there is anything to do for this runner, in one question: all that an idle one asks.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
WITH others AS MATERIALIZED (
    SELECT boot, pid, pid_started, host, lease_until FROM runners
    WHERE state IN ('alive', 'leaving') AND boot <> :boot
)
SELECT EXISTS (
           SELECT 1 FROM json_each(:queues) AS q
           WHERE EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting'
                           AND turn IS NOT NULL AND aside IS NULL AND lost < 2
                           AND kind || '@' || version IN (SELECT value FROM json_each(:knows)))
              OR EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting'
                           AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
                           AND kind || '@' || version IN (SELECT value FROM json_each(:knows)))
       ) AS waiting,
       EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND aside IS NOT NULL AND aside >= '')
           AS aside,
       EXISTS (SELECT 1 FROM jobs WHERE runner = :boot AND cancel_at >= started_at) AS cancels,
       EXISTS (SELECT 1 FROM runners r CROSS JOIN jobs j ON j.runner = r.boot
               WHERE r.state IN ('lost', 'gone') AND j.runner IS NOT NULL) AS left_over,
       EXISTS (SELECT 1 FROM duties d
               WHERE d.name IN (SELECT value FROM json_each(:duties))
                 AND NOT EXISTS (SELECT 1 FROM runners r
                                 WHERE r.boot = d.boot AND r.state = 'alive')) AS duty_free,
       (SELECT count(*) FROM duties WHERE boot = :boot) AS held,
       (SELECT json_group_array(json_array(boot, pid, pid_started)) FROM others
        WHERE host = :host) AS beside,
       (SELECT min((SELECT min(run_at) FROM jobs WHERE queue = q.value AND state = 'waiting'
                      AND turn IS NULL)) FROM json_each(:queues) AS q) AS due,
       (SELECT min(lease_until) FROM others) AS lease_ends,
       coalesce(
           (SELECT minute FROM tallies LIMIT 1), (SELECT at FROM charges LIMIT 1)) AS fold,
       (SELECT min(next_at) FROM schedules WHERE paused_at IS NULL) AS schedule,
       (SELECT value FROM meta WHERE name = 'pauses') AS pauses,
       (SELECT clock()) AS now;
