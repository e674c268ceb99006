-- name: payload_hashes
-- What was submitted before under these keys.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
SELECT key, payload_hash FROM jobs
WHERE kind = :kind AND key IN (SELECT value FROM json_each(:keys));

-- name: submit_jobs
-- Take in many jobs at once, each with its first event.
-- Twin: SQLite has no data-modifying CTE; the ids of this transaction are those above :last.
-- A new job has epoch 0; fairness is decided here: turn = smallest turn waiting + place.
INSERT INTO jobs (kind, version, queue, batch, limit_key, priority, turn, run_at, deadline, correlation,
                  traceparent, payload, created_at)
SELECT :kind, :version, :queue, :batch, CASE WHEN :limited THEN o.value ->> 1 END, :priority,
       CASE WHEN :run_at IS NULL AND :delay IS NULL THEN :offset + o.key + 1 + coalesce((
           SELECT min(turn) FROM jobs
           WHERE queue = :queue AND priority = :priority AND state = 'waiting'
             AND turn IS NOT NULL AND aside IS NULL AND lost < 2), 0) END,
       coalesce(:run_at, CASE WHEN :delay IS NOT NULL THEN clock_in(:delay) END),
       CASE WHEN :lasts IS NOT NULL THEN clock_in(:lasts) END,
       :correlation, :traceparent, o.value -> 0, (SELECT clock())
FROM jsonb_each(:rows) o
ORDER BY o.key;

INSERT INTO events (job, seq, type, at, actor)
SELECT id, 1, 'submitted', created_at, :actor FROM jobs WHERE id > :last;

INSERT INTO tallies (batch, kind, to_state, event, minute, n)
SELECT :batch, :kind, 'waiting', 'submitted', (SELECT clock()) / 60000000 * 60000000, count(*)
FROM jobs WHERE id > :last
HAVING count(*) > 0;

SELECT min(id), max(id), count(*), min(created_at), min(run_at) FROM jobs WHERE id > :last;

-- name: submit_keyed_jobs
-- Take in many jobs at once, each with its first event. A key that is there already adds nothing.
-- Twin: SQLite has no data-modifying CTE; the ids of this transaction are those above :last.
-- A new job has epoch 0; fairness is decided here: turn = smallest turn waiting + place.
-- A key that stands with another payload in a submission that is still coming in adds nothing either.
INSERT INTO jobs (kind, version, queue, batch, key, payload_hash, limit_key, priority, turn, run_at,
                  deadline, correlation, traceparent, payload, created_at)
SELECT :kind, :version, :queue, :batch, o.value ->> 'key', o.value ->> 'hash',
       o.value ->> 'limit_key', :priority,
       CASE WHEN :run_at IS NULL AND :delay IS NULL THEN :offset + o.key + 1 + coalesce((
           SELECT min(turn) FROM jobs
           WHERE queue = :queue AND priority = :priority AND state = 'waiting'
             AND turn IS NOT NULL AND aside IS NULL AND lost < 2), 0) END,
       coalesce(:run_at, CASE WHEN :delay IS NOT NULL THEN clock_in(:delay) END),
       CASE WHEN :lasts IS NOT NULL THEN clock_in(:lasts) END,
       :correlation, :traceparent, o.value -> 'payload', (SELECT clock())
FROM jsonb_each(:rows) o
WHERE NOT EXISTS (SELECT 1 FROM filling_jobs f WHERE f.kind = :kind AND f.key = o.value ->> 'key'
                    AND f.hash <> o.value ->> 'hash')
ORDER BY o.key
ON CONFLICT (kind, key) WHERE key IS NOT NULL DO NOTHING;

INSERT INTO events (job, seq, type, at, actor)
SELECT id, 1, 'submitted', created_at, :actor FROM jobs WHERE id > :last;

INSERT INTO tallies (batch, kind, to_state, event, minute, n)
SELECT :batch, :kind, 'waiting', 'submitted', (SELECT clock()) / 60000000 * 60000000, count(*)
FROM jobs WHERE id > :last
HAVING count(*) > 0;

SELECT id, key, created_at, run_at FROM jobs WHERE id > :last ORDER BY id;
