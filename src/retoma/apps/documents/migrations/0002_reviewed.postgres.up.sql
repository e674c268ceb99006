-- The service may reject a whole execution, and a person confirms or corrects a label.
ALTER TABLE executions ADD COLUMN blocked_code text;

ALTER TABLE executions ADD COLUMN blocked_words text;

ALTER TABLE executions ADD COLUMN blocked_at timestamptz;

CREATE INDEX executions_blocked ON executions (id) WHERE blocked_at IS NOT NULL;

-- What a person says the label is; `predicted`: what the model had answered then.
CREATE TABLE document_reviews (
    document   bigint PRIMARY KEY,
    predicted  text NOT NULL,
    label      text NOT NULL,
    reviewer   text NOT NULL,
    at         timestamptz NOT NULL
);

CREATE OR REPLACE VIEW resultados_classificacao AS
SELECT d.id, d.execution AS execucao_id, d.code AS codigo, d.name AS arquivo, d.sha256,
       d.size AS tamanho,
       CASE j.state WHEN 'done' THEN 'CONCLUIDO' WHEN 'dead' THEN 'ERRO'
            WHEN 'running' THEN 'PROCESSANDO' WHEN 'skipped' THEN 'PULADO'
            WHEN 'canceled' THEN 'PULADO' ELSE 'PENDENTE' END AS status,
       j.failures + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS tentativas,
       CASE WHEN j.state = 'parked' THEN j.code COLLATE "default" ELSE x.details ->> 'code' END AS erro_codigo,
       CASE WHEN j.state = 'parked' THEN x.details ->> 'why'
            ELSE x.details ->> 'message' END AS erro_mensagem,
       x.details ->> 'stack' AS erro_stack, x.at AS ultimo_erro_em,
       j.result ->> 'label' AS rotulo,
       CAST(j.result ->> 'confidence' AS double precision) AS confianca,
       j.result ->> 'justification' AS justificativa, j.result ->> 'model' AS modelo,
       coalesce(CAST(j.result ->> 'review' AS text), '') IN ('true', '1') AND w.document IS NULL AS revisar,
       coalesce(CAST(j.result ->> 'cut' AS text), '') IN ('true', '1') AS cortado,
       CAST(j.result ->> 'pages' AS integer) AS paginas,
       coalesce(d.origin, CAST(j.result ->> 'origin' AS bigint)) AS origem,
       (SELECT CASE WHEN e.type = 'canceled' THEN 'cancelado'
                    ELSE coalesce(e.details ->> 'why', '') END || ' (' || coalesce(e.actor, '') || ')'
        FROM events e WHERE e.job = j.id AND j.state IN ('skipped', 'canceled')
          AND e.type IN ('skipped', 'canceled')
        ORDER BY e.seq DESC LIMIT 1) AS pulado_motivo,
       j.ended_at AS concluido_em, j.id AS job,
       w.label AS rotulo_revisado, w.reviewer AS revisado_por, w.at AS revisado_em
FROM documents d JOIN jobs j ON j.id = d.job
LEFT JOIN events x ON x.job = j.id AND x.seq = (
    SELECT max(e.seq) FROM events e WHERE e.job = j.id AND (
        e.type IN ('failed', 'buried') OR e.type = 'parked' AND j.state = 'parked'))
LEFT JOIN document_reviews w ON w.document = d.id;

CREATE OR REPLACE VIEW execucoes_classificacao AS
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
             AND e.moved_at < (SELECT clock_in(-300)) AND NOT EXISTS (
                SELECT 1 FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
                WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id
                  AND (j.started_at >= (SELECT clock_in(-300)) OR j.progress_at >= (SELECT clock_in(-300))
                       OR j.ended_at >= (SELECT clock_in(-300))
                       OR (j.state = 'waiting' AND j.run_at >= (SELECT clock_in(-300)))
                       OR (r.state IN ('alive', 'leaving') AND r.lease_until >= (SELECT clock()))))
             AND EXISTS (
                SELECT 1 FROM jobs j
                WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id
                  AND (j.state = 'running' OR (j.state = 'waiting' AND j.aside IS NULL)))
             AND NOT EXISTS (
                SELECT 1 FROM runners r
                WHERE r.state = 'alive' AND r.lease_until >= (SELECT clock())
                  AND CAST(r.knows AS text) LIKE '%"documents.document@1"%'
                  AND r.slots <= (SELECT count(*) FROM jobs h WHERE h.runner = r.boot))
             THEN 'TRAVADO'
            ELSE 'EM_ANDAMENTO' END AS status,
       e.total,
       (SELECT max(greatest(j.started_at, j.progress_at, j.ended_at, r.beat_at))
        FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
        WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id) AS ultimo_heartbeat,
       (SELECT d.code FROM jobs j JOIN documents d ON d.job = j.id
        WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = e.id AND j.ended_at IS NOT NULL
        ORDER BY j.ended_at DESC, j.id DESC LIMIT 1) AS ultimo_codigo_processado,
       e.resumes AS tentativas_retry, e.most_resumes AS max_retries, e.epoch AS epoca,
       e.generation AS geracao, e.reprocessed AS reprocessados,
       e.stuck_at AS travado_em, e.failed_at AS erro_em,
       e.canceled_at AS cancelada_em, e.canceled_by AS cancelada_por,
       e.created_by AS criado_por, e.created_at AS criado_em,
       e.blocked_code AS bloqueio_codigo, e.blocked_words AS bloqueio_mensagem,
       e.blocked_at AS bloqueada_em
FROM executions e JOIN batches b ON b.id = e.id;
