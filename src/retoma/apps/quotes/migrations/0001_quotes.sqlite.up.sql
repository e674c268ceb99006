-- What is asked for; the document's table is a view over it, its job, its steps and its runner.
CREATE TABLE quotes (
    id           integer PRIMARY KEY AUTOINCREMENT,
    lote         integer,
    job          integer,
    code         text,
    kind         text NOT NULL CHECK (kind IN ('auto', 'product', 'vehicle')),
    description  text NOT NULL CHECK (description <> ''),
    created_by   text NOT NULL,
    created_at   integer NOT NULL,
    was          text
) STRICT;

CREATE UNIQUE INDEX quotes_job ON quotes (job);

CREATE INDEX quotes_lote ON quotes (lote, id) WHERE lote IS NOT NULL;

CREATE UNIQUE INDEX quotes_code ON quotes (lote, code) WHERE code IS NOT NULL;

-- What moved code saves by its face, and what was paid for before a quote came to us, show in the document's table.
-- Each row of another table is taken over once.
CREATE UNIQUE INDEX quotes_adopted ON quotes ((was ->> 'adopted_from'), (was ->> 'adopted_id'))
WHERE was IS NOT NULL;

-- Quotes that were taken over as history have no job whose state an index knows.
CREATE INDEX quotes_history ON quotes ((was ->> 'status'), id) WHERE was IS NOT NULL;

INSERT INTO rates (key, rate, burst, tokens, at)
VALUES ('quotes.anthropic', 50, 50, 50, (SELECT clock())),
       ('quotes.serpapi', 50, 50, 50, (SELECT clock())),
       ('quotes.fipe', 20, 20, 20, (SELECT clock()));

INSERT INTO breakers (name, threshold, rest)
VALUES ('quotes.anthropic', 5, 30), ('quotes.serpapi', 5, 30), ('quotes.fipe', 5, 30);

CREATE VIEW quote_requests AS
SELECT q.id, q.lote AS batch_request_id, q.code AS codigo, q.kind AS tipo, q.description AS descricao,
       CASE WHEN j.id IS NULL THEN coalesce(q.was ->> 'status', 'PENDING')
            WHEN j.state = 'done' THEN 'DONE'
            WHEN j.state = 'dead' THEN 'ERROR'
            WHEN j.state IN ('canceled', 'skipped') THEN 'CANCELED'
            WHEN j.started_at IS NULL THEN 'PENDING' ELSE 'PROCESSING' END AS status,
       CASE WHEN j.id IS NULL THEN q.was ->> 'processing_checkpoint'
            WHEN j.state = 'done' THEN 'COMPLETED'
            WHEN j.started_at IS NOT NULL THEN coalesce(j.checkpoint, 'INIT') END
           AS processing_checkpoint,
       CASE WHEN j.id IS NULL THEN q.was ->> 'last_heartbeat'
            ELSE strftime('%Y-%m-%d %H:%M:%f', coalesce(r.beat_at, j.progress_at) / 1e6, 'unixepoch')
            END AS last_heartbeat,
       CASE WHEN j.id IS NULL THEN q.was ->> 'worker_id' ELSE r.name END AS worker_id,
       coalesce((
           SELECT json_object('tested_products', json_group_array(json(value))) FROM (
               SELECT s.value FROM steps s
               WHERE s.job = j.id AND s.name = 'PRICE_EXTRACTION_PROGRESS' AND s.state = 'saved'
                 AND s.key NOT LIKE 'face/%'
               ORDER BY s.saved_at, s.key)
           HAVING count(*) > 0), (
           SELECT s.value -> 'resume_data' FROM steps s
           WHERE s.job = j.id AND s.key LIKE 'face/%' AND s.key NOT LIKE 'face/%/%'
           ORDER BY s.key DESC LIMIT 1), q.was -> 'resume_data') AS resume_data,
       CASE WHEN j.id IS NULL THEN q.was ->> 'started_at'
            ELSE strftime('%Y-%m-%d %H:%M:%f', coalesce((
                SELECT e.at FROM events e WHERE e.job = j.id AND e.type = 'claimed'
                ORDER BY e.seq LIMIT 1), j.started_at) / 1e6, 'unixepoch') END AS started_at,
       CASE WHEN j.id IS NULL THEN q.was ->> 'completed_at'
            ELSE strftime('%Y-%m-%d %H:%M:%f', j.ended_at / 1e6, 'unixepoch') END AS completed_at,
       coalesce(CAST(q.was ->> 'attempt_number' AS integer), 0)
           + (SELECT count(*) FROM events e WHERE e.job = j.id AND e.epoch IS NOT NULL
                AND e.type IN ('failed', 'lost', 'done', 'buried', 'parked', 'canceled'))
           + CASE WHEN j.state = 'running' THEN 1 ELSE 0 END AS attempt_number,
       coalesce((
           SELECT s.value FROM steps s WHERE s.job = j.id AND s.name = 'AI_ANALYSIS_START'
             AND s.key = '' AND s.state = 'saved' ORDER BY s.version DESC LIMIT 1), (
           SELECT s.value FROM steps s WHERE s.job = j.id
             AND s.key LIKE 'face/%/claude_payload_json' ORDER BY s.key DESC LIMIT 1),
           q.was -> 'claude_payload_json') AS claude_payload_json,
       coalesce((
           SELECT s.value FROM steps s WHERE s.job = j.id AND s.name = 'SHOPPING_SEARCH_START'
             AND s.key = '' AND s.state = 'saved' ORDER BY s.version DESC LIMIT 1), (
           SELECT s.value FROM steps s WHERE s.job = j.id
             AND s.key LIKE 'face/%/google_shopping_response_json' ORDER BY s.key DESC LIMIT 1),
           q.was -> 'google_shopping_response_json') AS google_shopping_response_json,
       CASE WHEN j.id IS NULL THEN q.was -> 'result' ELSE j.result END AS result,
       CASE WHEN j.id IS NULL THEN q.was ->> 'error_code' WHEN j.state = 'dead' THEN j.code END
           AS error_code,
       q.created_by, strftime('%Y-%m-%d %H:%M:%f', q.created_at / 1e6, 'unixepoch') AS created_at
FROM quotes q LEFT JOIN jobs j ON j.id = q.job LEFT JOIN runners r ON r.boot = j.runner;

CREATE TRIGGER quote_requests_insert INSTEAD OF INSERT ON quote_requests
BEGIN SELECT raise(ABORT, 'quote_requests is a view: use the API, /api/quotes'); END;

CREATE TRIGGER quote_requests_update INSTEAD OF UPDATE ON quote_requests
BEGIN SELECT raise(ABORT, 'quote_requests is a view: use the API, /api/quotes'); END;

CREATE TRIGGER quote_requests_delete INSTEAD OF DELETE ON quote_requests
BEGIN SELECT raise(ABORT, 'quote_requests is a view: use the API, /api/quotes'); END;

-- How long quotes took that ended within a day is asked often: by when they ended, not through all of history.
-- The kind is in it, or SQLite takes the index of all that is done.
CREATE INDEX quotes_ended ON jobs (kind, ended_at) WHERE kind = 'quotes.quote' AND state = 'done';
