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
       CASE WHEN j.id IS NULL THEN q.was -> 'resume_data' ELSE (
           SELECT json_object('tested_products', json_group_array(json(value))) FROM (
               SELECT s.value FROM steps s
               WHERE s.job = j.id AND s.name = 'PRICE_EXTRACTION_PROGRESS' AND s.state = 'saved'
               ORDER BY s.saved_at, s.key)
           HAVING count(*) > 0) END AS resume_data,
       CASE WHEN j.id IS NULL THEN q.was ->> 'started_at'
            ELSE strftime('%Y-%m-%d %H:%M:%f', j.started_at / 1e6, 'unixepoch') END AS started_at,
       CASE WHEN j.id IS NULL THEN q.was ->> 'completed_at'
            ELSE strftime('%Y-%m-%d %H:%M:%f', j.ended_at / 1e6, 'unixepoch') END AS completed_at,
       CASE WHEN j.id IS NULL THEN coalesce(CAST(q.was ->> 'attempt_number' AS integer), 0)
            ELSE j.failures END AS attempt_number,
       CASE WHEN j.id IS NULL THEN q.was -> 'claude_payload_json' ELSE (
           SELECT s.value FROM steps s WHERE s.job = j.id AND s.name = 'AI_ANALYSIS_START'
             AND s.state = 'saved' ORDER BY s.version DESC LIMIT 1) END AS claude_payload_json,
       CASE WHEN j.id IS NULL THEN q.was -> 'google_shopping_response_json' ELSE (
           SELECT s.value FROM steps s WHERE s.job = j.id AND s.name = 'SHOPPING_SEARCH_START'
             AND s.state = 'saved' ORDER BY s.version DESC LIMIT 1) END
           AS google_shopping_response_json,
       CASE WHEN j.id IS NULL THEN q.was -> 'result' ELSE j.result END AS result,
       CASE WHEN j.state = 'dead' THEN j.code END AS error_code,
       q.created_by, strftime('%Y-%m-%d %H:%M:%f', q.created_at / 1e6, 'unixepoch') AS created_at
FROM quotes q LEFT JOIN jobs j ON j.id = q.job LEFT JOIN runners r ON r.boot = j.runner;

CREATE TRIGGER quote_requests_insert INSTEAD OF INSERT ON quote_requests
BEGIN SELECT raise(ABORT, 'quote_requests is a view: use the API, /api/quotes'); END;

CREATE TRIGGER quote_requests_update INSTEAD OF UPDATE ON quote_requests
BEGIN SELECT raise(ABORT, 'quote_requests is a view: use the API, /api/quotes'); END;

CREATE TRIGGER quote_requests_delete INSTEAD OF DELETE ON quote_requests
BEGIN SELECT raise(ABORT, 'quote_requests is a view: use the API, /api/quotes'); END;

INSERT INTO rates (key, rate, burst, tokens, at)
VALUES ('quotes.anthropic', 50, 50, 50, (SELECT clock())),
       ('quotes.serpapi', 50, 50, 50, (SELECT clock())),
       ('quotes.fipe', 20, 20, 20, (SELECT clock()));

INSERT INTO breakers (name, threshold, rest)
VALUES ('quotes.anthropic', 5, 30), ('quotes.serpapi', 5, 30), ('quotes.fipe', 5, 30);
