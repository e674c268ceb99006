-- End many claims, each in its own way. Touches nothing whose runner or epoch has passed.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- A job somebody wants canceled ends so, unless its story got through first: never a retry.
-- Or unless it waits on to have its remote work stopped first: what the steps say then, not its runner,
-- which may not have heard that the last of them was saved.
-- Nobody waits past the job's deadline: it is taken up then, and buried.
-- The limits limit nothing. Each lets the planner expect a tenth: it looks up every job then, and does
-- not read all there are, as it would where the table was small when the plan was made.
WITH sent AS (
    SELECT few.*, CASE WHEN few.stopping THEN (
        SELECT true FROM steps s
        WHERE s.job = few.job AND s.name >= 'remote:' AND s.name < 'remote;'
          AND s.state IN ('begun', 'saved') LIMIT 1) END AS at_work
    FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer,
        event text, state text, reason text, code text, after double precision, result json,
        details json, aside text, stopping boolean)
        LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)
), ended AS (
    UPDATE jobs j SET
        state = CASE WHEN j.cancel_at IS NULL OR s.state IN ('done', 'skipped')
                       OR s.at_work THEN s.state
                     ELSE 'canceled' END,
        reason = CASE WHEN j.cancel_at IS NULL OR s.at_work THEN s.reason END,
        code = CASE WHEN j.cancel_at IS NULL OR s.at_work THEN s.code END,
        result = CASE WHEN s.state = 'done' THEN coalesce(s.result, CAST('null' AS json)) END,
        seq = j.seq + 1, runner = NULL,
        failures = j.failures - CASE WHEN s.event IN ('failed', 'buried')
                                       AND (j.cancel_at IS NULL OR s.at_work) THEN 0 ELSE 1 END,
        released = j.released + CASE WHEN s.event = 'released'
                                       AND (j.cancel_at IS NULL OR s.at_work) THEN 1 ELSE 0 END,
        lost = 0, turn = NULL, aside = s.aside,
        run_at = CASE WHEN s.state = 'waiting' AND (j.cancel_at IS NULL OR s.at_work)
            THEN least(clock_in(coalesce(s.after, 0)), j.deadline) END,
        ended_at = CASE WHEN s.state IN ('done', 'skipped', 'dead', 'canceled')
                          OR j.cancel_at IS NOT NULL AND s.at_work IS NOT TRUE
                        THEN (SELECT clock()) END
    FROM sent s
    WHERE j.id = s.job AND j.epoch = s.epoch AND j.state = 'running' AND j.runner IS NOT DISTINCT FROM :boot
      AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    RETURNING j.id, j.epoch, j.seq, j.batch, j.kind, j.state, j.started_at, j.run_at,
        CASE WHEN j.state = 'dead' THEN j.code END AS code,
        CASE WHEN j.state = 'canceled' THEN 'canceled' ELSE s.event END AS event,
        CASE WHEN j.cancel_at IS NOT NULL AND j.state IN ('done', 'skipped')
             THEN json_build_object('too_late', true) ELSE s.details END AS details,
        greatest(-1e15, least(1e15, CAST(1000 * (
            extract(epoch FROM (SELECT clock())) - extract(epoch FROM j.started_at)
        ) AS double precision))) AS ms
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT id, seq, epoch, event, (SELECT clock()), :boot, details FROM ended
), tallied AS (
    INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, code, minute, bucket,
                         n, ms)
    SELECT :boot, batch, kind, 'running', state, event, code,
           date_trunc('minute', (SELECT clock())),
           CAST(floor(ln(greatest(ms, 1)) / ln(2.0)) AS integer) AS bucket,
           count(*), sum(ms)
    FROM ended GROUP BY batch, kind, state, event, code, bucket
)
SELECT id, epoch, state FROM ended;
