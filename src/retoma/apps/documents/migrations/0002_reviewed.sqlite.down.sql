-- The views as they were. What people said of labels stays, as a plain table.
DROP VIEW execucoes_classificacao;

DROP VIEW resultados_classificacao;

DROP TABLE IF EXISTS document_reviews_kept;

CREATE TABLE document_reviews_kept AS SELECT * FROM document_reviews;

DROP TABLE document_reviews;

DROP INDEX executions_blocked;

ALTER TABLE executions DROP COLUMN blocked_code;

ALTER TABLE executions DROP COLUMN blocked_words;

ALTER TABLE executions DROP COLUMN blocked_at;

CREATE VIEW resultados_classificacao AS
SELECT d.id, d.execution AS execucao_id, d.code AS codigo, d.name AS arquivo, d.sha256,
       d.size AS tamanho,
       CASE j.state WHEN 'done' THEN 'CONCLUIDO' WHEN 'dead' THEN 'ERRO'
            WHEN 'running' THEN 'PROCESSANDO' WHEN 'skipped' THEN 'PULADO'
            WHEN 'canceled' THEN 'PULADO' ELSE 'PENDENTE' END AS status,
       j.failures + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS tentativas,
       x.details ->> 'code' AS erro_codigo, x.details ->> 'message' AS erro_mensagem,
       x.details ->> 'stack' AS erro_stack,
       strftime('%Y-%m-%d %H:%M:%f', x.at / 1e6, 'unixepoch') AS ultimo_erro_em,
       j.result ->> 'label' AS rotulo,
       CAST(j.result ->> 'confidence' AS real) AS confianca,
       j.result ->> 'justification' AS justificativa, j.result ->> 'model' AS modelo,
       coalesce(CAST(j.result ->> 'review' AS text), '') IN ('true', '1') AS revisar,
       coalesce(CAST(j.result ->> 'cut' AS text), '') IN ('true', '1') AS cortado,
       CAST(j.result ->> 'pages' AS integer) AS paginas,
       coalesce(d.origin, CAST(j.result ->> 'origin' AS integer)) AS origem,
       (SELECT CASE WHEN e.type = 'canceled' THEN 'cancelado'
                    ELSE coalesce(e.details ->> 'why', '') END || ' (' || coalesce(e.actor, '') || ')'
        FROM events e WHERE e.job = j.id AND j.state IN ('skipped', 'canceled')
          AND e.type IN ('skipped', 'canceled')
        ORDER BY e.seq DESC LIMIT 1) AS pulado_motivo,
       strftime('%Y-%m-%d %H:%M:%f', j.ended_at / 1e6, 'unixepoch') AS concluido_em, j.id AS job
FROM documents d JOIN jobs j ON j.id = d.job
LEFT JOIN events x ON x.job = j.id AND x.seq = (
    SELECT max(e.seq) FROM events e WHERE e.job = j.id AND e.type IN ('failed', 'buried'));

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
       e.created_at / 1e6, 'unixepoch') AS criado_em
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
