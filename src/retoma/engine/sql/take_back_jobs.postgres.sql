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
