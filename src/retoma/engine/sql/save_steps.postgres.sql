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
