-- name: payload_hashes
-- What was submitted before under these keys.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT key, payload_hash FROM jobs
WHERE kind = :kind AND key IN (SELECT json_array_elements_text(CAST(:keys AS json)));

-- name: submit_jobs
-- Take in many jobs at once, each with its first event.
-- Twin: one statement with data-modifying CTEs here, several on SQLite.
-- A new job has epoch 0; fairness is decided here: turn = smallest turn waiting + place.
-- COPY was tried: fifteen microseconds a job, where this takes twelve.
WITH base AS (
    SELECT coalesce(min(turn), 0) AS turn FROM jobs
    WHERE queue = :queue AND priority = :priority AND state = 'waiting'
      AND turn IS NOT NULL AND aside IS NULL AND lost < 2
), new AS (
    INSERT INTO jobs (kind, version, queue, batch, limit_key, priority, turn, run_at, deadline, correlation,
                      traceparent, payload, created_at)
    SELECT :kind, :version, :queue, :batch, CASE WHEN CAST(:limited AS integer) = 1 THEN sent.row ->> 1 END,
           :priority,
           CASE WHEN CAST(:run_at AS timestamptz) IS NULL AND CAST(:delay AS double precision) IS NULL
                THEN base.turn + :offset + sent.place END,
           coalesce(CAST(:run_at AS timestamptz), clock_in(:delay)),
           clock_in(:lasts), :correlation, :traceparent, sent.row -> 0, (SELECT clock())
    FROM json_array_elements(CAST(:rows AS json)) WITH ORDINALITY AS sent(row, place)
    CROSS JOIN base
    RETURNING id, created_at, run_at
), told AS (
    INSERT INTO events (job, seq, type, at, actor)
    SELECT id, 1, 'submitted', created_at, :actor FROM new
), tallied AS (
    INSERT INTO tallies (batch, kind, to_state, event, minute, n)
    SELECT :batch, :kind, 'waiting', 'submitted', date_trunc('minute', (SELECT clock())), count(*)
    FROM new HAVING count(*) > 0
)
SELECT min(id), max(id), count(*), min(created_at), min(run_at) FROM new;

-- name: submit_keyed_jobs
-- Take in many jobs at once, each with its first event. A key that is there already adds nothing.
-- Twin: one statement with data-modifying CTEs here, three statements on SQLite.
-- A new job has epoch 0; fairness is decided here: turn = smallest turn waiting + place.
-- A key that stands with another payload in a submission that is still coming in adds nothing either;
-- the lock keeps that submission from adding one meanwhile.
SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(5918112, hashtext(:kind))) AS locked;

WITH sent AS (
    SELECT * FROM ROWS FROM (
        json_to_recordset(CAST(:rows AS json)) AS (key text, hash text, limit_key text, payload json)
    ) WITH ORDINALITY AS t(key, hash, limit_key, payload, place)
), base AS (
    SELECT coalesce(min(turn), 0) AS turn FROM jobs
    WHERE queue = :queue AND priority = :priority AND state = 'waiting'
      AND turn IS NOT NULL AND aside IS NULL AND lost < 2
), new AS (
    INSERT INTO jobs (kind, version, queue, batch, key, payload_hash, limit_key, priority, turn, run_at,
                      deadline, correlation, traceparent, payload, created_at)
    SELECT :kind, :version, :queue, :batch, sent.key, sent.hash, sent.limit_key,
           :priority,
           CASE WHEN CAST(:run_at AS timestamptz) IS NULL AND CAST(:delay AS double precision) IS NULL
                THEN base.turn + :offset + sent.place END,
           coalesce(CAST(:run_at AS timestamptz), clock_in(:delay)),
           clock_in(:lasts), :correlation, :traceparent, coalesce(sent.payload, CAST('null' AS json)),
           (SELECT clock())
    FROM sent CROSS JOIN base
    WHERE NOT EXISTS (SELECT FROM filling_jobs f
                      WHERE f.kind = :kind AND f.key = sent.key AND f.hash <> sent.hash)
    ORDER BY sent.place
    ON CONFLICT (kind, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id, key, created_at, run_at
), told AS (
    INSERT INTO events (job, seq, type, at, actor)
    SELECT id, 1, 'submitted', created_at, :actor FROM new
), tallied AS (
    INSERT INTO tallies (batch, kind, to_state, event, minute, n)
    SELECT :batch, :kind, 'waiting', 'submitted', date_trunc('minute', (SELECT clock())), count(*)
    FROM new HAVING count(*) > 0
)
SELECT id, key, created_at, run_at FROM new;
