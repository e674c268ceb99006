-- name: parked_by_code
-- What parked documents wait for: by code, how many, and what the newest of them said.
SELECT p.code, p.n,
       (SELECT e.details ->> 'why' FROM events e WHERE e.job = p.newest AND e.type = 'parked'
        ORDER BY e.seq DESC LIMIT 1)
FROM (SELECT code, count(*) AS n, max(id) AS newest FROM jobs
      WHERE kind = 'embeddings.document' AND state = 'parked'
        AND state IN ('parked', 'skipped', 'dead', 'canceled')
      GROUP BY code) p
ORDER BY p.n DESC, p.code;

-- name: follower_of
-- The job that tells the webhook of the batch of a document, and its state.
SELECT c.id, c.state FROM jobs d JOIN jobs c ON c.kind = 'embeddings.completion'
     AND c.key = 'batch-' || CAST(d.batch AS text)
WHERE d.id = :job;

-- name: get_queue_job
-- One job, as the document's table has it.
SELECT q.id, q."jobType", q.status, q.attempts, q."maxAttempts", q."lockedBy", q."lockedAt",
       q."lockExpiresAt", q."lastHeartbeatAt", q."processingStartedAt", q."processedAt", q."createdAt",
       q."runAt", q."documentId", q."errorCode", q."correlationId"
FROM queue_jobs q WHERE q.id = :job;

-- name: jobs_locked_by
-- What the index (lockedBy) was for: as many jobs are looked at as there are slots in use.
WITH held AS MATERIALIZED (
    SELECT id, runner FROM jobs WHERE runner > '' AND kind = 'embeddings.document')
SELECT h.id FROM held h JOIN runners r ON r.boot = h.runner WHERE r.name = :worker
ORDER BY h.id DESC;

-- name: next_jobs
-- The jobs whose turn it is, for code that claims them one by one: those that have waited for their time first.
SELECT id FROM (
    SELECT id FROM jobs
    WHERE queue = 'embeddings.document' AND state = 'waiting' AND turn IS NULL
      AND run_at <= (SELECT clock()) AND aside IS NULL
    ORDER BY run_at LIMIT :n) due
UNION ALL
SELECT id FROM (
    SELECT id FROM jobs
    WHERE queue = 'embeddings.document' AND state = 'waiting' AND turn IS NOT NULL
      AND aside IS NULL AND lost < 2
    ORDER BY priority, turn, id LIMIT :n) line;

-- name: stuck_jobs
-- What the index (status, lockExpiresAt) was for: jobs whose lock has expired, by the few runners whose lease is over.
WITH over AS MATERIALIZED (
    SELECT boot FROM runners WHERE state = 'lost' OR (state IN ('alive', 'leaving') AND lease_until < (SELECT clock())))
SELECT j.id FROM over o
CROSS JOIN jobs j  -- SQLite reads the runners first: the index by status would be read from end to end
WHERE j.runner = o.boot AND j.kind = 'embeddings.document';

-- name: sum_events
-- What ever happened to jobs of a kind, how often and for how long; added up to this instant.
SELECT event, sum(n), sum(ms) FROM (
    SELECT event, n, ms FROM totals WHERE kind = :kind
    UNION ALL
    SELECT event, n, coalesce(ms, 0) FROM tallies WHERE kind = :kind AND event IS NOT NULL) each_
GROUP BY event;

-- name: sum_workers
-- The same by the names of runners that are still known.
SELECT r.name, each_.event, sum(each_.n), sum(each_.ms) FROM (
    SELECT boot, event, n, ms FROM runner_kinds WHERE kind = :kind
    UNION ALL
    SELECT runner, event, n, coalesce(ms, 0) FROM tallies
    WHERE kind = :kind AND event IS NOT NULL AND runner IS NOT NULL) each_
JOIN runners r ON r.boot = each_.boot
GROUP BY r.name, each_.event;

-- name: text_of_job
-- What the document of a job is, for code that has claimed it.
SELECT d.id, c.name, d.name, d.text
FROM jobs j JOIN embeddings_documents d ON d.id = CAST(j.payload ->> 'document' AS bigint)
JOIN embeddings_collections c ON c.id = d.collection
WHERE j.id = :job;

-- name: runner_throughput
-- What each runner has done to the jobs of a kind, those that beat last first.
SELECT r.name, r.boot, r.state, r.since, r.beat_at, (SELECT clock()), r.lease_until < (SELECT clock()), e.done,
       e.retried, e.failed, e.recovered, e.ms
FROM runners r JOIN (
    SELECT boot,
           sum(CASE WHEN event IN ('done', 'skipped') THEN n ELSE 0 END) AS done,
           sum(CASE WHEN event = 'failed' THEN n ELSE 0 END) AS retried,
           sum(CASE WHEN event IN ('buried', 'poisoned') THEN n ELSE 0 END) AS failed,
           sum(CASE WHEN event = 'lost' THEN n ELSE 0 END) AS recovered,
           sum(CASE WHEN event = 'done' THEN ms ELSE 0 END) AS ms
    FROM (SELECT boot, event, n, ms FROM runner_kinds WHERE kind = :kind
          UNION ALL
          SELECT runner, event, n, coalesce(ms, 0) FROM tallies
          WHERE kind = :kind AND event IS NOT NULL AND runner IS NOT NULL) counted
    GROUP BY boot) e ON e.boot = r.boot
ORDER BY r.beat_at DESC, r.boot LIMIT :n;
