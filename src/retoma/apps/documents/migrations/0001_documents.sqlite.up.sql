-- Projects, executions and documents; the document's two tables are views over them and their jobs.
-- An execution is a batch: its id is the batch's. What it is can be told from its documents at every
-- instant, so no status is stored, and none can be late: CONCLUIDO when nothing of it is open (C1).
CREATE TABLE document_projects (
    id          integer PRIMARY KEY AUTOINCREMENT,
    name        text NOT NULL CHECK (name <> ''),
    rules       text NOT NULL,
    created_by  text NOT NULL,
    created_at  integer NOT NULL,
    removed_at  integer
) STRICT;

CREATE UNIQUE INDEX document_projects_name ON document_projects (name) WHERE removed_at IS NULL;

CREATE TABLE executions (
    id             integer PRIMARY KEY,
    project        integer NOT NULL,
    name           text NOT NULL,
    rules          text NOT NULL,
    total          integer NOT NULL CHECK (total > 0),
    epoch          integer NOT NULL DEFAULT 1,
    generation     integer NOT NULL DEFAULT 1,
    resumes        integer NOT NULL DEFAULT 0,
    most_resumes   integer NOT NULL,
    reprocessed    integer NOT NULL DEFAULT 0,
    moved_at       integer NOT NULL,
    stuck_at       integer,
    failed_at      integer,
    canceled_at    integer,
    canceled_by    text,
    created_by     text NOT NULL,
    created_at     integer NOT NULL,
    blocked_code   text,
    blocked_words  text,
    blocked_at     integer,
    CHECK (failed_at IS NULL OR (stuck_at IS NOT NULL AND resumes >= most_resumes)),
    CHECK ((canceled_at IS NULL) = (canceled_by IS NULL))
) STRICT;

CREATE INDEX executions_project ON executions (project, id);

CREATE INDEX executions_blocked ON executions (id) WHERE blocked_at IS NOT NULL;

CREATE TABLE documents (
    id         integer PRIMARY KEY AUTOINCREMENT,
    execution  integer,
    job        integer,
    code       text NOT NULL CHECK (code <> ''),
    name       text NOT NULL,
    sha256     text NOT NULL,
    size       integer NOT NULL,
    origin     integer
) STRICT;

CREATE UNIQUE INDEX documents_job ON documents (job);

CREATE UNIQUE INDEX documents_code ON documents (execution, code);

CREATE INDEX documents_same ON documents (execution, sha256, id);

CREATE INDEX documents_execution ON documents (execution, id);

CREATE INDEX documents_content ON documents (sha256);

-- What documents say, by the digest of it, in pieces: runners on any machine read it here.
-- `at`: when somebody last wanted it; bytes that nobody wants are dropped a day later.
CREATE TABLE document_contents (
    sha256  text PRIMARY KEY,
    size    integer NOT NULL,
    whole   integer NOT NULL DEFAULT 0,
    at      integer NOT NULL
) STRICT;

CREATE TABLE document_pieces (
    sha256  text NOT NULL,
    n       integer NOT NULL,
    bytes   blob NOT NULL,
    PRIMARY KEY (sha256, n)
) STRICT;

-- Who asks the model about a content, or has: across executions one at a time for each recipe.
-- The answer is the result of that job. Who holds it without running or having it stands in nobody's way.
CREATE TABLE document_askings (
    sha256    text NOT NULL,
    recipe    text NOT NULL,
    document  integer NOT NULL,
    job       integer NOT NULL,
    epoch     integer NOT NULL,
    at        integer NOT NULL,
    PRIMARY KEY (sha256, recipe)
) STRICT;

INSERT INTO rates (key, rate, burst, tokens, at)
VALUES ('documents.openrouter', 50, 50, 50, (SELECT clock()));

INSERT INTO breakers (name, threshold, rest) VALUES ('documents.openrouter', 5, 30);

-- What a person says the label is; `predicted`: what the model had answered then.
CREATE TABLE document_reviews (
    document   integer PRIMARY KEY,
    predicted  text NOT NULL,
    label      text NOT NULL,
    reviewer   text NOT NULL,
    at         integer NOT NULL
) STRICT;

CREATE VIEW resultados_classificacao AS
SELECT d.id, d.execution AS execucao_id, d.code AS codigo, d.name AS arquivo, d.sha256,
       d.size AS tamanho,
       CASE j.state WHEN 'done' THEN 'CONCLUIDO' WHEN 'dead' THEN 'ERRO'
            WHEN 'running' THEN 'PROCESSANDO' WHEN 'skipped' THEN 'PULADO'
            WHEN 'canceled' THEN 'PULADO' ELSE 'PENDENTE' END AS status,
       j.failures + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS tentativas,
       CASE WHEN j.state = 'parked' THEN j.code ELSE x.details ->> 'code' END AS erro_codigo,
       CASE WHEN j.state = 'parked' THEN x.details ->> 'why'
            ELSE x.details ->> 'message' END AS erro_mensagem,
       x.details ->> 'stack' AS erro_stack,
       strftime('%Y-%m-%d %H:%M:%f', x.at / 1e6, 'unixepoch') AS ultimo_erro_em,
       j.result ->> 'label' AS rotulo,
       CAST(j.result ->> 'confidence' AS real) AS confianca,
       j.result ->> 'justification' AS justificativa, j.result ->> 'model' AS modelo,
       coalesce(CAST(j.result ->> 'review' AS text), '') IN ('true', '1') AND w.document IS NULL AS revisar,
       coalesce(CAST(j.result ->> 'cut' AS text), '') IN ('true', '1') AS cortado,
       CAST(j.result ->> 'pages' AS integer) AS paginas,
       coalesce(d.origin, CAST(j.result ->> 'origin' AS integer)) AS origem,
       (SELECT CASE WHEN e.type = 'canceled' THEN 'cancelado'
                    ELSE coalesce(e.details ->> 'why', '') END || ' (' || coalesce(e.actor, '') || ')'
        FROM events e WHERE e.job = j.id AND j.state IN ('skipped', 'canceled')
          AND e.type IN ('skipped', 'canceled')
        ORDER BY e.seq DESC LIMIT 1) AS pulado_motivo,
       strftime('%Y-%m-%d %H:%M:%f', j.ended_at / 1e6, 'unixepoch') AS concluido_em, j.id AS job,
       w.label AS rotulo_revisado, w.reviewer AS revisado_por, strftime('%Y-%m-%d %H:%M:%f', w.at / 1e6, 'unixepoch') AS revisado_em
FROM documents d JOIN jobs j ON j.id = d.job
LEFT JOIN events x ON x.job = j.id AND x.seq = (
    SELECT max(e.seq) FROM events e WHERE e.job = j.id AND (
        e.type IN ('failed', 'buried') OR e.type = 'parked' AND j.state = 'parked'))
LEFT JOIN document_reviews w ON w.document = d.id;

CREATE VIEW execucoes_classificacao AS
SELECT e.id, e.project AS projeto_id, e.name AS nome,
       CASE WHEN coalesce((SELECT sum(c.n) FROM counts c
                           WHERE c.batch = e.id AND c.state IN ('waiting', 'running', 'parked')), 0)
               + coalesce((SELECT sum(
                     CASE WHEN t.to_state IN ('waiting', 'running', 'parked') THEN t.n ELSE 0 END
                   - CASE WHEN t.from_state IN ('waiting', 'running', 'parked') THEN t.n ELSE 0 END)
                     FROM tallies t WHERE t.batch = e.id), 0) = 0 THEN 'CONCLUIDO'
            WHEN e.failed_at IS NOT NULL THEN 'ERRO'
            WHEN e.generation = 1 AND NOT EXISTS (
                SELECT 1 FROM jobs j WHERE j.id BETWEEN b.first_job AND b.last_job
                  AND j.batch = e.id AND j.epoch > 0) THEN 'PENDENTE'
            -- Stuck: for five minutes nothing moved, nothing is held by a living runner or waits for
            -- its backoff, and of something that is open nobody can say why (no pause, no gate, no
            -- person it waits for, no line before runners that have their hands full).
            WHEN b.paused_at IS NULL AND NOT EXISTS (
                SELECT 1 FROM pauses p LEFT JOIN kinds k ON k.name = 'documents.document'
                WHERE p.scope = 'kind' AND p.name = 'documents.document'
                   OR p.scope = 'queue' AND p.name = k.queue
                   OR p.scope = 'application' AND p.name = k.application)
             AND e.moved_at < (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000 - 300000000) AND NOT EXISTS (
                SELECT 1 FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
                WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id
                  AND (j.started_at >= (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000 - 300000000) OR j.progress_at >= (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000 - 300000000)
                       OR j.ended_at >= (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000 - 300000000)
                       OR (j.state = 'waiting' AND j.run_at >= (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000 - 300000000))
                       OR (r.state IN ('alive', 'leaving') AND r.lease_until >= (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000))))
             AND EXISTS (
                SELECT 1 FROM jobs j
                WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id
                  AND (j.state = 'running' OR (j.state = 'waiting' AND j.aside IS NULL)))
             AND NOT EXISTS (
                SELECT 1 FROM runners r
                WHERE r.state = 'alive' AND r.lease_until >= (SELECT CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer) * 1000)
                  AND r.knows LIKE '%"documents.document@1"%'
                  AND r.slots <= (SELECT count(*) FROM jobs h WHERE h.runner = r.boot))
             THEN 'TRAVADO'
            ELSE 'EM_ANDAMENTO' END AS status,
       e.total,
       strftime('%Y-%m-%d %H:%M:%f', nullif((
        SELECT max(max(coalesce(j.started_at, 0), coalesce(j.progress_at, 0),
                       coalesce(j.ended_at, 0), coalesce(r.beat_at, 0)))
        FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
        WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id), 0) / 1e6, 'unixepoch') AS ultimo_heartbeat,
       (SELECT d.code FROM jobs j JOIN documents d ON d.job = j.id
        WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id AND j.ended_at IS NOT NULL
        ORDER BY j.ended_at DESC, j.id DESC LIMIT 1) AS ultimo_codigo_processado,
       e.resumes AS tentativas_retry, e.most_resumes AS max_retries, e.epoch AS epoca,
       e.generation AS geracao, e.reprocessed AS reprocessados,
       strftime('%Y-%m-%d %H:%M:%f',
       e.stuck_at / 1e6, 'unixepoch') AS travado_em,
       strftime('%Y-%m-%d %H:%M:%f',
       e.failed_at / 1e6, 'unixepoch') AS erro_em,
       strftime('%Y-%m-%d %H:%M:%f',
       e.canceled_at / 1e6, 'unixepoch') AS cancelada_em,
       e.canceled_by AS cancelada_por,
       e.created_by AS criado_por,
       strftime('%Y-%m-%d %H:%M:%f',
       e.created_at / 1e6, 'unixepoch') AS criado_em,
       e.blocked_code AS bloqueio_codigo, e.blocked_words AS bloqueio_mensagem,
       strftime('%Y-%m-%d %H:%M:%f', e.blocked_at / 1e6, 'unixepoch') AS bloqueada_em
FROM executions e JOIN batches b ON b.id = e.id;

CREATE TRIGGER resultados_classificacao_insert INSTEAD OF INSERT ON resultados_classificacao
BEGIN SELECT raise(ABORT, 'resultados_classificacao is a view: use the API, /classificador'); END;

CREATE TRIGGER resultados_classificacao_update INSTEAD OF UPDATE ON resultados_classificacao
BEGIN SELECT raise(ABORT, 'resultados_classificacao is a view: use the API, /classificador'); END;

CREATE TRIGGER resultados_classificacao_delete INSTEAD OF DELETE ON resultados_classificacao
BEGIN SELECT raise(ABORT, 'resultados_classificacao is a view: use the API, /classificador'); END;

CREATE TRIGGER execucoes_classificacao_insert INSTEAD OF INSERT ON execucoes_classificacao
BEGIN SELECT raise(ABORT, 'execucoes_classificacao is a view: use the API, /classificador'); END;

CREATE TRIGGER execucoes_classificacao_update INSTEAD OF UPDATE ON execucoes_classificacao
BEGIN SELECT raise(ABORT, 'execucoes_classificacao is a view: use the API, /classificador'); END;

CREATE TRIGGER execucoes_classificacao_delete INSTEAD OF DELETE ON execucoes_classificacao
BEGIN SELECT raise(ABORT, 'execucoes_classificacao is a view: use the API, /classificador'); END;
