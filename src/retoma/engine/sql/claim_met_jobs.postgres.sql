-- Hand those of the met that may run to a living runner. Each claim is a new epoch.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- The limits limit nothing: see save_steps.
WITH taken AS (
    UPDATE jobs j SET state = 'running', runner = :boot, epoch = j.epoch + 1, seq = j.seq + 1,
        failures = j.failures + 1, started_at = (SELECT clock()), reason = NULL
    FROM (SELECT * FROM (SELECT * FROM json_array_elements_text(CAST(:jobs AS json)) AS m(job)
              LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) m
    WHERE j.id = CAST(m.job AS bigint) AND j.state = 'waiting'
      AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
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
FROM taken;
