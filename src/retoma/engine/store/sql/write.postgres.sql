-- name: count_refused
-- Late writes that changed nothing, counted.
-- Twin: minutes are cut differently.
INSERT INTO tallies (runner, kind, to_state, event, minute, n)
VALUES (:boot, :kind, 'refused', 'refused', date_trunc('minute', (SELECT clock())), :n);

-- name: hold_jobs
-- Hold the rows of many jobs for this transaction, where this runner and epoch still have them; which are wanted.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
-- The limits limit nothing: see save_steps.
WITH held AS (
    SELECT j.id, j.epoch
    FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
              AS t(job bigint, epoch integer) LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
    JOIN jobs j ON j.id = t.job AND j.epoch = t.epoch AND j.state = 'running'
               AND j.runner IS NOT DISTINCT FROM :boot
    WHERE (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    ORDER BY j.id FOR NO KEY UPDATE OF j
)
UPDATE jobs SET progress_at = (SELECT clock()) FROM held
WHERE jobs.id = held.id AND jobs.epoch = held.epoch
RETURNING jobs.id, jobs.epoch, cancel_at IS NULL;

-- name: report_progress
-- How far jobs are, the last word of each. Touches nothing whose runner or epoch has passed.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- The limits limit nothing: see save_steps.
UPDATE jobs j SET progress = t.progress, note = t.note, progress_at = (SELECT clock())
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint,
          epoch integer, progress double precision, note text)
          LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
WHERE j.id = t.job AND j.epoch = t.epoch AND j.state = 'running' AND j.runner IS NOT DISTINCT FROM :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING j.id, j.epoch, j.cancel_at IS NOT NULL;

-- name: save_steps
-- Keep steps, many at a time. Touches nothing whose runner or epoch has passed.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- A row is a job with its first step; others of the same job travel in `more`, because an UPDATE
-- touches its target once, however many rows match.
-- The limits limit nothing. Each lets the planner expect a tenth: it looks up every job then, and does
-- not read all there are, as it would where the table was small when the plan was made.
WITH sent AS (
    SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer,
        n integer, last text, name text, version integer, key text, state text, value json,
        cost json, told json, more json)
        LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)
), held AS (
    UPDATE jobs j SET seq = j.seq + s.n, checkpoint = s.last, lost = 0,
        progress_at = (SELECT clock())
    FROM sent s
    WHERE j.id = s.job AND j.epoch = s.epoch AND j.state = 'running'
      AND j.runner IS NOT DISTINCT FROM :boot
      AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    RETURNING j.id, j.epoch, j.generation, j.seq - s.n AS base, j.cancel_at, s.name, s.version,
        s.key, s.state, s.value, s.cost, s.told, s.more
), flat AS (
    SELECT id, epoch, generation, base + 1 AS seq, name, version, key, state, value, cost, told
    FROM held
    UNION ALL
    SELECT h.id, h.epoch, h.generation, h.base + 1 + m.nth, m.name, m.version, m.key, m.state,
           m.value, m.cost, m.told
    FROM held h CROSS JOIN LATERAL ROWS FROM (
        json_to_recordset(h.more) AS (name text, version integer, key text, state text,
            value json, cost json, told json)
    ) WITH ORDINALITY AS m(name, version, key, state, value, cost, told, nth)
    WHERE h.more IS NOT NULL
), kept AS (
    INSERT INTO steps AS old (job, name, version, key, generation, epoch, state, begun_at,
                              saved_at, value, cost)
    SELECT id, name, version, key, generation, epoch, state,
           CASE WHEN state = 'begun' THEN (SELECT clock()) END,
           CASE WHEN state IN ('saved', 'ended') THEN (SELECT clock()) END,
           CASE WHEN state = 'saved' THEN coalesce(value, CAST('null' AS json)) ELSE value END,
           cost
    FROM flat
    ON CONFLICT (job, name, version, key) DO UPDATE
    SET generation = excluded.generation, epoch = excluded.epoch, state = excluded.state,
        begun_at = coalesce(excluded.begun_at, old.begun_at), saved_at = excluded.saved_at,
        value = excluded.value, cost = excluded.cost
    WHERE old.state IN ('begun', 'failed') OR excluded.state = 'ended'
       OR old.generation < excluded.generation
       OR excluded.state = 'saved' AND old.name >= 'remote:' AND old.name < 'remote;'
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT id, seq, epoch, 'step_' || state, (SELECT clock()), :boot, told FROM flat
)
SELECT id, epoch, cancel_at IS NOT NULL FROM held;

-- name: settle_jobs
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
