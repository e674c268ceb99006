-- name: any_open
-- Whether anything of these queues that this runner knows waits or runs; set aside does not count.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
-- What waits for its time in a paused batch counts no more than what of it is set aside already.
SELECT 1 FROM json_each(:queues) AS q
WHERE EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost < 2
                AND kind || '@' || version IN (SELECT value FROM json_each(:knows)))
   OR EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting'
                AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
                AND kind || '@' || version IN (SELECT value FROM json_each(:knows)))
   OR EXISTS (SELECT 1 FROM jobs WHERE queue = q.value AND state = 'waiting' AND turn IS NULL
                AND kind || '@' || version IN (SELECT value FROM json_each(:knows))
                AND NOT coalesce(batch IN (
                    SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL), false))
   OR EXISTS (SELECT 1 FROM runners r CROSS JOIN jobs j ON j.runner = r.boot
              WHERE j.runner IS NOT NULL AND j.queue = q.value
                AND j.kind || '@' || j.version IN (SELECT value FROM json_each(:knows)))
LIMIT 1;

-- name: claim_jobs
-- Hand waiting jobs to a living runner, at most one suspect among them. Each claim is a new epoch.
-- Twin: SQLite has no data-modifying CTE, so what was chosen stands in a temp table; nor LATERAL: a
-- queue's first rows are a list of ids that `IN` looks up. No hint: there are no dead entries here.
-- CROSS JOIN keeps the order: after ANALYZE a temp table is taken for larger than jobs.
-- What has a gate before it is left where it stands; a last row of nothing says that some was met.
-- Nothing for one who has not heard of the latest pause: a last row with a 1 says so (decision 0057).
CREATE TEMP TABLE IF NOT EXISTS picked (id INTEGER PRIMARY KEY, gated integer);

DELETE FROM temp.picked;

INSERT INTO temp.picked
SELECT j.id, j.limit_key IS NOT NULL OR coalesce(
    j.batch IN (SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL), false)
    OR o.value -> 'holding' IS NOT NULL AND j.kind || '@' || j.version IN (
        SELECT value FROM json_each(o.value, '$.holding'))
FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost < 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :share)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :slots;

INSERT INTO temp.picked
SELECT j.id, j.limit_key IS NOT NULL OR coalesce(
    j.batch IN (SELECT b.id FROM batches b WHERE b.paused_at IS NOT NULL), false)
    OR o.value -> 'holding' IS NOT NULL AND j.kind || '@' || j.version IN (
        SELECT value FROM json_each(o.value, '$.holding'))
FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost >= 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :suspects;

INSERT INTO events (job, seq, epoch, type, at, actor)
SELECT j.id, j.seq + 1, j.epoch + 1, 'claimed', (SELECT clock()), :boot
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
WHERE NOT p.gated;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, minute, n)
SELECT :boot, j.batch, j.kind, 'waiting', 'running', 'claimed',
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
WHERE NOT p.gated
GROUP BY j.batch, j.kind;

UPDATE jobs SET state = 'running', runner = :boot, epoch = epoch + 1, seq = seq + 1,
    failures = failures + 1, started_at = (SELECT clock()), reason = NULL
WHERE id IN (SELECT id FROM temp.picked WHERE NOT gated);

SELECT j.id, j.epoch, j.kind, j.version, j.batch, j.generation, j.fresh_from, j.failures, j.lost,
       j.released, j.checkpoint, j.correlation,
       (j.deadline - (SELECT clock())) / 1000000.0 AS time_left, j.payload, j.queue, j.priority,
       j.turn, j.limit_key
FROM temp.picked p CROSS JOIN jobs j ON j.id = p.id
WHERE NOT p.gated
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE EXISTS (SELECT 1 FROM temp.picked WHERE gated)
UNION ALL
SELECT NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE (SELECT value FROM meta WHERE name = 'pauses') <> :pauses;

-- name: claim_met_jobs
-- Hand those of the met that may run to a living runner. Each claim is a new epoch.
-- Twin: SQLite has no data-modifying CTE; who may run stands in a temp table first.
CREATE TEMP TABLE IF NOT EXISTS met (id INTEGER PRIMARY KEY);

DELETE FROM temp.met;

INSERT INTO temp.met
SELECT value FROM json_each(:jobs)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive';

INSERT INTO events (job, seq, epoch, type, at, actor)
SELECT j.id, j.seq + 1, j.epoch + 1, 'claimed', (SELECT clock()), :boot
FROM temp.met p CROSS JOIN jobs j ON j.id = p.id;

INSERT INTO tallies (runner, batch, kind, from_state, to_state, event, minute, n)
SELECT :boot, j.batch, j.kind, 'waiting', 'running', 'claimed',
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM temp.met p CROSS JOIN jobs j ON j.id = p.id
GROUP BY j.batch, j.kind;

UPDATE jobs SET state = 'running', runner = :boot, epoch = epoch + 1, seq = seq + 1,
    failures = failures + 1, started_at = (SELECT clock()), reason = NULL
WHERE id IN (SELECT id FROM temp.met)
RETURNING id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
    checkpoint, correlation, (deadline - (SELECT clock())) / 1000000.0 AS time_left, payload, queue,
    priority, turn, limit_key;

-- name: load_steps
-- What these jobs may read back: the steps of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
-- What a step cost is spared by a job that was stopped, not by one that left its story by itself.
-- The value of a saved step comes along where its job's values are few or small; else its size.
SELECT s.job, s.name, s.version, s.key, s.state,
       CASE WHEN octet_length(s.value) * j.seq <= :inline OR s.state <> 'saved'
                OR substr(s.name, 1, 7) = 'remote:' THEN s.value END AS value,
       CASE WHEN octet_length(s.value) * j.seq <= :inline OR s.state <> 'saved'
                OR substr(s.name, 1, 7) = 'remote:' THEN 0 ELSE octet_length(s.value) END AS unread,
       ((SELECT clock()) - coalesce(s.saved_at, s.begun_at)) / 1000000.0 AS age,
       ((SELECT clock()) - j.progress_at) / 1000000.0 AS quiet,
       j.cancel_at IS NOT NULL AS canceling, j.progress, j.note,
       CASE WHEN s.cost IS NOT NULL AND EXISTS (
           SELECT 1 FROM events e WHERE e.job = j.id AND e.seq = j.seq - 1
             AND e.type IN ('failed', 'lost', 'released', 'unparked', 'again')) THEN s.cost END AS spared
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job'
CROSS JOIN steps s ON s.job = j.id AND s.generation >= o.value ->> 'fresh_from';

-- name: load_values
-- The values of these steps of a job, those of generations that it still sees.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT s.name, s.version, s.key, s.value
FROM json_each(:rows) o
CROSS JOIN steps s ON s.job = :job AND s.name = o.value ->> 'name'
    AND s.version = o.value ->> 'version' AND s.key = o.value ->> 'key'
WHERE s.state = 'saved' AND s.generation >= :fresh_from;

-- name: meet_job
-- Look at one job, gates or not, and hold it until it is decided whether it may run.
-- Twin: the row is locked there, and passed over where another runner holds it; SQLite has one writer.
SELECT id, lost >= 2, batch, limit_key, kind || '@' || version, epoch > 0 FROM jobs
WHERE id = :job AND queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
  AND kind || '@' || version IN (SELECT value FROM json_each(:knows))
  AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND NOT EXISTS (SELECT 1 FROM pauses p
                  WHERE p.scope = 'queue' AND p.name = jobs.queue
                     OR p.scope = 'kind' AND p.name = jobs.kind
                     OR p.scope = 'application' AND p.name = (
                         SELECT k.application FROM kinds k WHERE k.name = jobs.kind));

-- name: meet_jobs
-- Look at the first of the waiting, gates or not, and hold them until it is decided who may run.
-- Twin: rows are locked there, and skipped where another runner holds them; SQLite has one writer.
CREATE TEMP TABLE IF NOT EXISTS met (id INTEGER PRIMARY KEY);

DELETE FROM temp.met;

INSERT INTO temp.met
SELECT j.id FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost < 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :meet)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :meet;

INSERT INTO temp.met
SELECT j.id FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
    SELECT w.id FROM jobs w
    WHERE w.queue = o.value ->> 'queue' AND w.state = 'waiting' AND w.turn IS NOT NULL
      AND w.aside IS NULL AND w.lost >= 2
      AND w.kind || '@' || w.version IN (SELECT value FROM json_each(:knows))
    ORDER BY w.priority, w.turn, w.id LIMIT :suspects)
WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND (SELECT value FROM meta WHERE name = 'pauses') = :pauses
ORDER BY j.priority, j.turn, j.id LIMIT :suspects;

SELECT j.id, j.lost >= 2, j.batch, j.limit_key, j.kind || '@' || j.version, j.epoch > 0
FROM temp.met p CROSS JOIN jobs j ON j.id = p.id
ORDER BY j.priority, j.turn, j.id;

-- name: next_due
-- When the next scheduled job of these queues is due, and what time it is.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
SELECT min((SELECT min(run_at) FROM jobs
            WHERE queue = o.value ->> 'queue' AND state = 'waiting' AND turn IS NULL)),
       (SELECT clock())
FROM json_each(:queues) o;

-- name: promote_jobs
-- Give due jobs their turn, as many as this claim may take. No move: they wait as before.
-- Twin: SQLite has no LATERAL: a queue's first due rows are a list of ids that `IN` looks up.
-- The epoch stays: nobody holds a waiting job.
-- Who has had a turn and did not fail stands behind whoever waits for the first: a poll that is
-- always due, and older, would else go before new jobs for ever.
WITH due AS MATERIALIZED (
    SELECT j.id, (j.epoch > 0 AND j.code IS NULL) + coalesce((
        SELECT min(w.turn) FROM jobs w
        WHERE w.queue = j.queue AND w.priority = j.priority AND w.state = 'waiting'
          AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0) AS turn
    FROM json_each(:queues) o CROSS JOIN jobs j ON j.id IN (
        SELECT d.id FROM jobs d
        WHERE d.queue = o.value ->> 'queue' AND d.state = 'waiting' AND d.turn IS NULL
          AND d.run_at <= (SELECT clock())
        ORDER BY d.run_at LIMIT :slots)
)
UPDATE jobs SET turn = due.turn FROM due WHERE jobs.id = due.id;

-- name: recall_jobs
-- What one boot holds: a claim whose answer was lost is found here, under its epoch.
-- Twin: lengths of time are counted by extract() there, in microseconds here.
SELECT id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
       checkpoint, correlation, (deadline - (SELECT clock())) / 1000000.0 AS time_left, payload,
       queue, priority, turn, limit_key
FROM jobs WHERE runner = :boot;

-- name: traceparents
-- To which spans the claims of these jobs belong; only asked where somebody traces.
-- Twin: sets of rows arrive by json_each here, by json_array_elements_text there.
SELECT id, traceparent FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids)) AND traceparent IS NOT NULL;

-- name: waiting_queues
-- Of each of these queues the first waiting job that this runner knows: which queues have work.
-- Twin: SQLite has no LATERAL; sets of rows arrive by json_array_elements_text there.
SELECT w.priority, w.turn, w.id, w.queue FROM json_each(:queues) o CROSS JOIN jobs w ON w.id = (
    SELECT f.id FROM jobs f
    WHERE f.queue = o.value AND f.state = 'waiting' AND f.turn IS NOT NULL AND f.aside IS NULL
      AND f.lost < 2 AND f.kind || '@' || f.version IN (SELECT value FROM json_each(:knows))
    ORDER BY f.priority, f.turn, f.id LIMIT 1)
UNION ALL
SELECT w.priority, w.turn, w.id, w.queue FROM json_each(:queues) o CROSS JOIN jobs w ON w.id IN (
    SELECT f.id FROM jobs f
    WHERE f.queue = o.value AND f.state = 'waiting' AND f.turn IS NOT NULL AND f.aside IS NULL
      AND f.lost >= 2 AND f.kind || '@' || f.version IN (SELECT value FROM json_each(:knows))
    ORDER BY f.priority, f.turn, f.id LIMIT :suspects);
