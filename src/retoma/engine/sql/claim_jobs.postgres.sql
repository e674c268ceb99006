-- Hand waiting jobs to a living runner, at most one suspect among them. Each claim is a new epoch.
-- Twin: all queues in one statement, rows skipped where another runner holds them.
-- (priority, turn, id) >= the hint: without it a claim walks the dead entries of its own past.
-- What has a gate before it is left where it stands; a last row of nothing says that some was met.
-- Nothing for one who has not heard of the latest pause: a last row with a 1 says so (decision 0057).
WITH queues AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:queues AS json))
        AS q(queue text, priority integer, turn bigint, id bigint, holding text[])
    WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
      AND (SELECT value FROM meta WHERE name = 'pauses') = CAST(:pauses AS text)
), plain AS MATERIALIZED (
    SELECT w.place, w.gated FROM queues q CROSS JOIN LATERAL (
        SELECT ctid AS place, id, priority, turn, limit_key IS NOT NULL OR coalesce(batch = ANY(
            ARRAY(SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL)), false)
            OR q.holding IS NOT NULL AND kind || '@' || version = ANY(q.holding) AS gated
        FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
          AND lost < 2 AND (priority, turn, id) >= (q.priority, q.turn, q.id)
          AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
              CAST(:knows AS json))))
        ORDER BY priority, turn, id LIMIT :share FOR UPDATE SKIP LOCKED
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :slots
), suspect AS MATERIALIZED (
    SELECT w.place, w.gated FROM queues q CROSS JOIN LATERAL (
        SELECT ctid AS place, id, priority, turn, limit_key IS NOT NULL OR coalesce(batch = ANY(
            ARRAY(SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL)), false)
            OR q.holding IS NOT NULL AND kind || '@' || version = ANY(q.holding) AS gated
        FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
          AND lost >= 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
              CAST(:knows AS json))))
        ORDER BY priority, turn, id LIMIT :suspects FOR UPDATE SKIP LOCKED
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects
), taken AS (
    UPDATE jobs j SET state = 'running', runner = :boot, epoch = j.epoch + 1, seq = j.seq + 1,
        failures = j.failures + 1, started_at = (SELECT clock()), reason = NULL
    FROM (SELECT * FROM plain UNION ALL SELECT * FROM suspect) p
    WHERE j.ctid = p.place AND NOT p.gated AND j.state = 'waiting'
    RETURNING j.id, j.epoch, j.seq, j.kind, j.version, j.batch, j.generation, j.fresh_from,
        j.failures, j.lost, j.released, j.checkpoint, j.correlation,
        CAST(extract(epoch FROM j.deadline) - extract(epoch FROM (SELECT clock()))
           AS double precision) AS time_left,
        j.payload, j.queue, j.priority, j.turn, j.limit_key, j.started_at
), told AS (
    INSERT INTO events (job, seq, epoch, type, at, actor)
    SELECT id, seq, epoch, 'claimed', started_at, :boot FROM taken
), tallied AS (
    INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, minute, n)
    SELECT :boot, batch, kind, 'waiting', 'running', 'claimed',
           date_trunc('minute', (SELECT clock())), count(*)
    FROM taken GROUP BY batch, kind
)
SELECT id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
       checkpoint, correlation, time_left, payload, queue, priority, turn, limit_key
FROM taken
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE EXISTS (SELECT FROM plain WHERE gated) OR EXISTS (SELECT FROM suspect WHERE gated)
UNION ALL
SELECT NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE (SELECT value FROM meta WHERE name = 'pauses') <> CAST(:pauses AS text);
