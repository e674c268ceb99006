-- name: any_open
-- Whether anything of these queues that this runner knows waits or runs; set aside does not count.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
-- What waits for its time in a paused batch counts no more than what of it is set aside already.
WITH known AS MATERIALIZED (
    SELECT ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))) AS tags
)
SELECT 1 FROM known k CROSS JOIN json_array_elements_text(CAST(:queues AS json)) AS q(queue)
WHERE EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost < 2
                AND kind || '@' || version = ANY(k.tags))
   OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
                AND kind || '@' || version = ANY(k.tags))
   OR EXISTS (SELECT FROM jobs WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL
                AND kind || '@' || version = ANY(k.tags)
                AND NOT coalesce(batch = ANY(ARRAY(
                    SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL)), false))
   OR EXISTS (SELECT FROM runners r JOIN jobs j ON j.runner = r.boot
              WHERE j.queue = q.queue AND j.kind || '@' || j.version = ANY(k.tags))
LIMIT 1;

-- name: claim_jobs
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

-- name: claim_met_jobs
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

-- name: load_steps
-- What these jobs may read back: the steps of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- What a step cost is spared by a job that was stopped, not by one that left its story by itself.
-- The limits limit nothing: see save_steps.
-- The value of a saved step comes along where its job's values are few or small; else its size.
SELECT s.job, s.name, s.version, s.key, s.state,
       CASE WHEN v.unread = 0 THEN s.value END AS value, v.unread,
       CAST(extract(epoch FROM (SELECT clock()))
           - extract(epoch FROM coalesce(s.saved_at, s.begun_at)) AS double precision) AS age,
       CAST(extract(epoch FROM (SELECT clock())) - extract(epoch FROM j.progress_at)
           AS double precision) AS quiet,
       j.cancel_at IS NOT NULL AS canceling, j.progress, j.note,
       CASE WHEN s.cost IS NOT NULL AND EXISTS (
           SELECT 1 FROM events e WHERE e.job = j.id AND e.seq = j.seq - 1
             AND e.type IN ('failed', 'lost', 'released', 'unparked', 'again')) THEN s.cost END AS spared
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
          AS t(job bigint, fresh_from integer) LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
JOIN jobs j ON j.id = t.job
JOIN steps s ON s.job = t.job AND s.generation >= t.fresh_from
CROSS JOIN LATERAL (SELECT CASE
    WHEN s.state <> 'saved' OR s.value IS NULL OR substr(s.name, 1, 7) = 'remote:' THEN 0
    WHEN CAST(octet_length(CAST(s.value AS text)) AS bigint) * j.seq <= :inline THEN 0
    ELSE octet_length(CAST(s.value AS text)) END AS unread) v;

-- name: load_values
-- The values of these steps of a job, those of generations that it still sees.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- The limits limit nothing: see save_steps.
SELECT s.name, s.version, s.key, s.value
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
          AS t(name text, version integer, key text) LIMIT (SELECT 1000000)) few
      LIMIT (SELECT 1000000)) t
JOIN steps s ON s.job = :job AND s.name = t.name AND s.version = t.version AND s.key = t.key
WHERE s.state = 'saved' AND s.generation >= :fresh_from;

-- name: meet_job
-- Look at one job, gates or not, and hold it until it is decided whether it may run.
-- Twin: the row is locked here, and passed over where another runner holds it; SQLite has one writer.
SELECT id, lost >= 2, batch, limit_key, kind || '@' || version, epoch > 0 FROM jobs
WHERE id = :job AND queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
  AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))))
  AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND NOT EXISTS (SELECT FROM pauses p
                  WHERE p.scope = 'queue' AND p.name = jobs.queue
                     OR p.scope = 'kind' AND p.name = jobs.kind
                     OR p.scope = 'application' AND p.name = (
                         SELECT k.application FROM kinds k WHERE k.name = jobs.kind))
FOR UPDATE SKIP LOCKED;

-- name: meet_jobs
-- Look at the first of the waiting, gates or not, and hold them until it is decided who may run.
-- Twin: rows are locked here, and skipped where another runner holds them; SQLite has one writer.
WITH queues AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text)
    WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
      AND (SELECT value FROM meta WHERE name = 'pauses') = CAST(:pauses AS text)
), plain AS MATERIALIZED (
    SELECT w.* FROM queues q CROSS JOIN LATERAL (
        SELECT id, lost, batch, limit_key, kind, version, epoch, priority, turn FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
          AND lost < 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
              CAST(:knows AS json))))
        ORDER BY priority, turn, id LIMIT :meet FOR UPDATE SKIP LOCKED
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :meet
), suspect AS MATERIALIZED (
    SELECT w.* FROM queues q CROSS JOIN LATERAL (
        SELECT id, lost, batch, limit_key, kind, version, epoch, priority, turn FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
          AND lost >= 2 AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(
              CAST(:knows AS json))))
        ORDER BY priority, turn, id LIMIT :suspects FOR UPDATE SKIP LOCKED
    ) w
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects
)
SELECT m.id, m.lost >= 2, m.batch, m.limit_key, m.kind || '@' || m.version, m.epoch > 0
FROM (SELECT * FROM plain UNION ALL SELECT * FROM suspect) m
ORDER BY m.priority, m.turn, m.id;

-- name: next_due
-- When the next scheduled job of these queues is due, and what time it is.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
SELECT min((SELECT min(run_at) FROM jobs
            WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL)), (SELECT clock())
FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text);

-- name: promote_jobs
-- Give due jobs their turn, as many as this claim may take. No move: they wait as before.
-- Twin: rows are locked one by one here; SQLite has one writer.
-- The epoch stays: nobody holds a waiting job.
-- Who has had a turn and did not fail stands behind whoever waits for the first: a poll that is
-- always due, and older, would else go before new jobs for ever.
-- The update asks by id alone: with `turn IS NULL` it would read all that is not due, row by row.
WITH due AS MATERIALIZED (
    SELECT d.id, d.queue, d.priority, d.epoch > 0 AND d.code IS NULL AS behind
    FROM json_to_recordset(CAST(:queues AS json)) AS q(queue text)
    CROSS JOIN LATERAL (
        SELECT id, queue, priority, epoch, code FROM jobs
        WHERE queue = q.queue AND state = 'waiting' AND turn IS NULL
          AND run_at <= (SELECT clock())
        ORDER BY run_at LIMIT :slots FOR UPDATE SKIP LOCKED
    ) d
), base AS MATERIALIZED (
    SELECT l.queue, l.priority, coalesce((
        SELECT min(w.turn) FROM jobs w
        WHERE w.queue = l.queue AND w.priority = l.priority AND w.state = 'waiting'
          AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0) AS turn
    FROM (SELECT DISTINCT queue, priority FROM due) l
)
UPDATE jobs j SET turn = base.turn + CASE WHEN due.behind THEN 1 ELSE 0 END
FROM due JOIN base ON base.queue = due.queue AND base.priority = due.priority
WHERE j.id = due.id;

-- name: recall_jobs
-- What one boot holds: a claim whose answer was lost is found here, under its epoch.
-- Twin: lengths of time are counted by extract() here, in microseconds there.
SELECT id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
       checkpoint, correlation,
       CAST(extract(epoch FROM deadline) - extract(epoch FROM (SELECT clock()))
           AS double precision) AS time_left,
       payload, queue, priority, turn, limit_key
FROM jobs WHERE runner = :boot;

-- name: traceparents
-- To which spans the claims of these jobs belong; only asked where somebody traces.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT id, traceparent FROM jobs
WHERE id IN (SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS bigint))
  AND traceparent IS NOT NULL;

-- name: waiting_queues
-- Of each of these queues the first waiting job that this runner knows: which queues have work.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
WITH known AS MATERIALIZED (
    SELECT ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))) AS tags
), queues AS MATERIALIZED (
    SELECT queue FROM json_array_elements_text(CAST(:queues AS json)) AS q(queue)
)
SELECT w.priority, w.turn, w.id, q.queue FROM known k CROSS JOIN queues q CROSS JOIN LATERAL (
    SELECT priority, turn, id FROM jobs
    WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND kind || '@' || version = ANY(k.tags)
    ORDER BY priority, turn, id LIMIT 1
) w
UNION ALL
SELECT w.priority, w.turn, w.id, q.queue FROM known k CROSS JOIN queues q CROSS JOIN LATERAL (
    SELECT priority, turn, id FROM jobs
    WHERE queue = q.queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
      AND kind || '@' || version = ANY(k.tags)
    ORDER BY priority, turn, id LIMIT :suspects
) w;
