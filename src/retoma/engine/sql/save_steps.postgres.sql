-- Keep steps, many at a time. Touches nothing whose runner or epoch has passed.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- Rows of one job are folded first: an UPDATE touches its target once, however many rows match.
-- They travel through it as arrays: joined to them again, a thousand rows would meet a thousand.
WITH per AS (
    SELECT job, epoch, count(*) AS n, array_agg(name) AS names, array_agg(version) AS versions,
           array_agg(key) AS keys, array_agg(state) AS states, array_agg(value) AS values,
           array_agg(cost) AS costs
    FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer, name text,
        version integer, key text, state text, value json, cost json)
    GROUP BY job, epoch
), held AS (
    UPDATE jobs j SET seq = j.seq + per.n, checkpoint = per.names[per.n], lost = 0,
        progress_at = (SELECT clock())
    FROM per
    WHERE j.id = per.job AND j.epoch = per.epoch AND j.state = 'running'
      AND j.runner IS NOT DISTINCT FROM :boot
      AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    RETURNING j.id, j.epoch, j.generation, j.seq - per.n AS base, j.cancel_at, per.names,
        per.versions, per.keys, per.states, per.values, per.costs
), kept AS (
    INSERT INTO steps AS old (job, name, version, key, generation, epoch, state, begun_at,
                              saved_at, value, cost)
    SELECT h.id, s.name, s.version, s.key, h.generation, h.epoch, s.state,
           CASE WHEN s.state = 'begun' THEN (SELECT clock()) END,
           CASE WHEN s.state = 'saved' THEN (SELECT clock()) END,
           CASE WHEN s.state = 'saved' THEN coalesce(s.value, CAST('null' AS json)) END, s.cost
    FROM held h CROSS JOIN LATERAL unnest(h.names, h.versions, h.keys, h.states, h.values,
        h.costs) AS s(name, version, key, state, value, cost)
    ON CONFLICT (job, name, version, key) DO UPDATE
    SET generation = excluded.generation, epoch = excluded.epoch, state = excluded.state,
        begun_at = coalesce(excluded.begun_at, old.begun_at), saved_at = excluded.saved_at,
        value = excluded.value, cost = excluded.cost
    WHERE old.state = 'begun' OR old.generation < excluded.generation
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT h.id, h.base + s.nth, h.epoch, 'step_' || s.state, (SELECT clock()), :boot,
           json_build_object('step', s.name, 'key', s.key)
    FROM held h CROSS JOIN LATERAL unnest(h.names, h.keys, h.states) WITH ORDINALITY
        AS s(name, key, state, nth)
)
SELECT id, epoch, cancel_at IS NOT NULL FROM held;
