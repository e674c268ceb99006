-- name: count_begun
-- How many quotes of a lote were begun and wait again; and how many are parked and were never begun.
-- Reads the jobs of this lote alone, which lie beside each other, however many others wait.
SELECT (SELECT count(*) FROM jobs
        WHERE id BETWEEN (SELECT first_job FROM batches WHERE id = :lote)
                     AND (SELECT last_job FROM batches WHERE id = :lote)
          AND batch = :lote AND state = 'waiting' AND started_at IS NOT NULL),
       (SELECT count(*) FROM jobs WHERE batch = :lote AND state = 'parked'
            AND state IN ('parked', 'skipped', 'dead', 'canceled') AND started_at IS NULL);

-- name: expire_old
-- Quotes begun long ago that nobody holds: their time is over now, and their next claim buries them.
-- Compare and set on the state, the epoch stays: one that a runner holds is not touched. Reads what waits in
-- their queue, suspects too, by its indices, and no history.
UPDATE jobs SET deadline = (SELECT clock()), run_at = (SELECT clock())
WHERE id IN (
    SELECT id FROM jobs WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NULL
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2)
  AND kind = 'quotes.quote' AND state = 'waiting' AND aside IS NULL AND deadline IS NULL
  AND started_at < clock_in(-CAST(:seconds AS double precision))
RETURNING id, epoch;

-- name: expire_parked
-- Quotes that began long ago and are parked: their time is over once they wait again.
-- Their next claim buries them. Compare and set on the state, the epoch stays.
UPDATE jobs SET deadline = (SELECT clock())
WHERE id IN (
    SELECT id FROM jobs
    WHERE kind = 'quotes.quote' AND state = 'parked' AND state IN ('parked', 'skipped', 'dead', 'canceled')
      AND deadline IS NULL AND started_at < clock_in(-CAST(:seconds AS double precision))
    ORDER BY id LIMIT :n)
  AND state = 'parked' AND deadline IS NULL
RETURNING id, epoch;

-- name: export_quotes
-- The next quotes of a lote, in the order in which they were asked for.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM quote_requests r
WHERE r.batch_request_id = :lote AND r.id > :after
ORDER BY r.id LIMIT :n;

-- name: get_quote
-- One quote, as the document's table has it, with its job.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.last_heartbeat, r.worker_id, r.resume_data, r.started_at, r.completed_at, r.attempt_number,
       r.claude_payload_json, r.google_shopping_response_json, r.result, r.error_code, r.created_by,
       r.created_at, q.job
FROM quote_requests r JOIN quotes q ON q.id = r.id WHERE r.id = :quote;

-- name: get_wanted
-- What a quote asks for, and what was known of it before: when it came to us, or to moved code since.
SELECT q.description, q.kind, q.was,
       (SELECT s.value FROM steps s WHERE s.job = q.job AND s.key LIKE 'face/%/claude_payload_json'
        ORDER BY s.key DESC LIMIT 1),
       (SELECT s.value FROM steps s WHERE s.job = q.job AND s.key LIKE 'face/%/google_shopping_response_json'
        ORDER BY s.key DESC LIMIT 1),
       (SELECT s.value -> 'resume_data' FROM steps s
        WHERE s.job = q.job AND s.key LIKE 'face/%' AND s.key NOT LIKE 'face/%/%'
        ORDER BY s.key DESC LIMIT 1)
FROM quotes q WHERE q.id = :quote;

-- name: job_of_quote
-- The job of a quote, and its lote.
SELECT job, lote FROM quotes WHERE id = :quote;

-- name: list_history
-- A page of the quotes that were taken over as history, in a status, the newest first.
-- Materialized, or the order by id is taken from the primary key, past everything in another status; a plus, or
-- SQLite goes through all that has no job.
WITH history AS MATERIALIZED (
    SELECT id FROM quotes
    WHERE was IS NOT NULL AND (was ->> 'status') = :status AND +job IS NULL
      AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
      AND (CAST(:lote AS bigint) IS NULL OR lote = :lote)
    ORDER BY id DESC LIMIT :n
)
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM history h JOIN quote_requests r ON r.id = h.id
ORDER BY r.id DESC;

-- name: list_lotes
-- Batches of quotes, the newest first.
SELECT id FROM batches
WHERE kind = 'quotes.quote' AND (CAST(:before AS bigint) IS NULL OR id < :before)
ORDER BY id DESC LIMIT :n;

-- name: list_lote_quotes
-- A page of the quotes of a lote, the newest first.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM quote_requests r
WHERE r.batch_request_id = :lote AND r.id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY r.id DESC LIMIT :n;

-- name: list_quotes
-- A page of quotes, the newest first.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM quote_requests r
WHERE r.id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY r.id DESC LIMIT :n;

-- name: lote_checkpoints
-- Where the quotes of a lote stand that are at work now; bounded by slots.
SELECT coalesce(checkpoint, 'INIT'), count(*) FROM jobs
WHERE runner > '' AND batch = :lote
GROUP BY coalesce(checkpoint, 'INIT');

-- name: name_job
-- The job of a quote that was asked for by itself.
UPDATE quotes SET job = :job WHERE id = :quote;

-- name: name_jobs
-- The jobs of a lote, each to its quote: its payload is the number of that. They lie between its first and last id.
UPDATE quotes SET lote = :lote, job = j.id
FROM jobs j
WHERE j.batch = :lote AND quotes.id = CAST(CAST(j.payload AS text) AS bigint)
  AND j.id >= (SELECT first_job FROM batches WHERE id = :lote)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :lote);

-- name: parked_by_code
-- What parked quotes wait for, of one lote or of all: by code, how many, and the newest of them.
SELECT code, count(*), max(id) FROM jobs
WHERE kind = 'quotes.quote' AND state = 'parked' AND state IN ('parked', 'skipped', 'dead', 'canceled')
  AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
GROUP BY code ORDER BY 2 DESC, 1;

-- name: parked_message
-- What the last attempt of a parked job said.
SELECT details ->> 'why' FROM events WHERE job = :job AND type = 'parked' ORDER BY seq DESC LIMIT 1;

-- name: quotes_at
-- Jobs of quotes that runners of this name hold: as many are looked at as there are slots in use.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH held AS MATERIALIZED (SELECT id, runner FROM jobs WHERE runner > '' AND kind = 'quotes.quote')
SELECT h.id FROM held h JOIN runners r ON r.boot = h.runner WHERE r.name = :worker
ORDER BY h.id DESC;

-- name: waiting_quotes
-- Jobs of quotes that wait, begun before or not, the newest first: by the indices of what waits, whatever has ended.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH waiting AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NULL
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND aside >= ''
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
)
SELECT DISTINCT id FROM waiting
WHERE CAST(:before AS bigint) IS NULL OR id < :before
ORDER BY id DESC LIMIT :n;
