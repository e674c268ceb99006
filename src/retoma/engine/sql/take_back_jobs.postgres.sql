-- Take back what lost runners held, a bite at a time. The epoch stays; the next claim adds one.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- The third loss in a row buries a suspect as poison; a job to be canceled is not tried again,
-- unless remote work of it must be stopped first.
-- From runners to jobs, in that order: with ORDER BY id the planner walks the whole history.
WITH absent AS MATERIALIZED (
    SELECT boot, state FROM runners WHERE state IN ('lost', 'gone')
), left_over AS MATERIALIZED (
    SELECT h.id, a.state AS runner_state,
           h.cancel_at IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM steps s
               WHERE s.job = h.id AND s.name >= 'remote:' AND s.name < 'remote;'
                 AND s.state IN ('begun', 'saved')) AS canceled
    FROM absent a CROSS JOIN LATERAL (
        SELECT id, cancel_at FROM jobs WHERE runner = a.boot
        LIMIT :bite FOR UPDATE SKIP LOCKED
    ) h
    LIMIT :bite
), back AS (
    UPDATE jobs j SET
        state = CASE WHEN l.canceled THEN 'canceled'
                     WHEN l.runner_state = 'lost' AND j.lost >= 2 THEN 'dead'
                     ELSE 'waiting' END,
        reason = CASE WHEN NOT l.canceled AND l.runner_state = 'lost' AND j.lost >= 2
                      THEN 'poison' END,
        code = CASE WHEN NOT l.canceled AND l.runner_state = 'lost' AND j.lost >= 2
                    THEN 'poison' END,
        lost = j.lost + CASE l.runner_state WHEN 'lost' THEN 1 ELSE 0 END,
        released = j.released + CASE l.runner_state WHEN 'gone' THEN 1 ELSE 0 END,
        failures = j.failures - 1, seq = j.seq + 1, runner = NULL, turn = NULL,
        run_at = (SELECT clock()),
        ended_at = CASE WHEN l.canceled
                          OR l.runner_state = 'lost' AND j.lost >= 2 THEN (SELECT clock()) END
    FROM left_over l
    WHERE j.id = l.id AND j.state = 'running'
    RETURNING j.id, j.epoch, j.seq, j.batch, j.kind, j.queue, j.limit_key, j.state, j.code,
        CASE j.state WHEN 'canceled' THEN 'canceled' WHEN 'dead' THEN 'buried'
             ELSE CASE l.runner_state WHEN 'lost' THEN 'lost' ELSE 'released' END END AS event
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT id, seq, epoch, event, (SELECT clock()), :actor,
           CASE WHEN event = 'buried' THEN CAST('{"reason":"poison","code":"poison"}' AS json) END
    FROM back
), tallied AS (
    INSERT INTO tallies (runner, batch, kind, from_state, to_state, code, minute, n)
    SELECT :actor, batch, kind, 'running', state, code, date_trunc('minute', (SELECT clock())),
           count(*)
    FROM back GROUP BY batch, kind, state, code
)
SELECT id, epoch, state, queue, limit_key FROM back;
