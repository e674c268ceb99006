-- Tell of things that jobs hold or let go of. Touches nothing whose runner or epoch has passed.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- A row is a job with all that is told of it, because an UPDATE touches its target once.
WITH sent AS (
    SELECT * FROM json_to_recordset(CAST(:rows AS json))
        AS t(job bigint, epoch integer, n integer, told json)
), held AS (
    UPDATE jobs j SET seq = j.seq + s.n
    FROM sent s
    WHERE j.id = s.job AND j.epoch = s.epoch AND j.state = 'running'
      AND j.runner IS NOT DISTINCT FROM :boot
      AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
    RETURNING j.id, j.epoch, j.seq - s.n AS base, s.told
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor, details)
    SELECT h.id, h.base + m.nth, h.epoch, :type, (SELECT clock()), :boot, m.details
    FROM held h CROSS JOIN LATERAL json_array_elements(h.told) WITH ORDINALITY AS m(details, nth)
)
SELECT id, epoch FROM held;
