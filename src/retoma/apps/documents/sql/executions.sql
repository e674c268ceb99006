-- name: add_execution
-- Write down an execution: a batch, and the rules its documents are classified by.
INSERT INTO executions (id, project, name, rules, total, most_resumes, moved_at, created_by, created_at)
VALUES (:execution, :project, :name, :rules, :total, :most, (SELECT clock()), :actor,
        (SELECT clock()));

-- name: block_execution
-- The service rejects this execution: none of its documents asks until a person resumes it.
-- What may be one document's alone (:certain is 0) stops the others where none was answered since the
-- execution last moved, or where two were rejected before.
UPDATE executions SET blocked_code = :code, blocked_words = :words, blocked_at = (SELECT clock())
WHERE id = :execution AND epoch = :epoch AND blocked_at IS NULL
  AND (:certain = 1 OR NOT EXISTS (
        SELECT 1 FROM batches b JOIN jobs j ON j.id BETWEEN b.first_job AND b.last_job
        WHERE b.id = :execution AND j.batch = b.id AND j.state = 'done'
          AND j.ended_at >= executions.moved_at)
    OR EXISTS (
        SELECT 1 FROM jobs j WHERE j.batch = :execution AND j.state = 'parked' AND j.code = :code
        ORDER BY j.id LIMIT 1 OFFSET 1))
RETURNING epoch;

-- name: cancel_execution
-- Somebody wants no more of an execution; it goes on only to end.
UPDATE executions SET epoch = epoch + 1, canceled_at = (SELECT clock()), canceled_by = :actor,
    moved_at = (SELECT clock()), stuck_at = NULL, failed_at = NULL,
    blocked_code = NULL, blocked_words = NULL, blocked_at = NULL
WHERE id = :execution AND canceled_at IS NULL
RETURNING epoch;

-- name: fail_execution
-- It is stuck, was seen so before, and may not be resumed once more: only an admin sets it going.
UPDATE executions SET failed_at = (SELECT clock())
WHERE id = :execution AND epoch = :epoch AND failed_at IS NULL AND stuck_at IS NOT NULL
  AND resumes >= most_resumes
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution) = 'TRAVADO'
RETURNING epoch;

-- name: find_blocked
-- Executions that the service rejects and that have documents left.
SELECT e.id, e.name, e.blocked_code, e.blocked_words
FROM executions e JOIN execucoes_classificacao v ON v.id = e.id
WHERE e.blocked_at IS NOT NULL AND v.status <> 'CONCLUIDO'
ORDER BY e.id LIMIT :n;

-- name: find_stuck
-- Executions that do not move, and nobody knows why.
-- Looked for among those of jobs that are open, by their indices, and never in history.
SELECT v.id, v.nome, v.tentativas_retry, v.max_retries, v.epoca, v.travado_em, v.ultimo_heartbeat
FROM execucoes_classificacao v
WHERE v.status = 'TRAVADO' AND v.id IN (
    SELECT j.batch FROM jobs j WHERE j.runner > '' AND j.kind = 'documents.document'
    UNION
    SELECT j.batch FROM jobs j
    WHERE j.queue = 'documents.document' AND j.state = 'waiting' AND j.turn IS NULL
    UNION
    SELECT j.batch FROM jobs j
    WHERE j.queue = 'documents.document' AND j.state = 'waiting' AND j.turn IS NOT NULL
      AND j.aside IS NULL AND j.lost < 2
    UNION
    SELECT j.batch FROM jobs j
    WHERE j.queue = 'documents.document' AND j.state = 'waiting' AND j.turn IS NOT NULL
      AND j.aside IS NULL AND j.lost >= 2)
ORDER BY v.id LIMIT :n;

-- name: get_execution
-- One execution, as the document's table has it.
SELECT v.id, v.projeto_id, v.nome, v.status, v.total, v.tentativas_retry, v.max_retries, v.geracao,
       v.criado_por, v.criado_em, v.ultimo_heartbeat, v.ultimo_codigo_processado, v.epoca,
       v.reprocessados, v.travado_em, v.erro_em, v.cancelada_em, v.cancelada_por, v.bloqueio_codigo,
       v.bloqueio_mensagem, v.bloqueada_em
FROM execucoes_classificacao v WHERE v.id = :execution;

-- name: holds_of
-- Why what is open of an execution does not end now: how many for each reason, and until when they wait.
SELECT why, count(*), min(until) FROM (
    SELECT CASE WHEN j.state = 'running' AND r.state IN ('alive', 'leaving')
                     AND r.lease_until >= (SELECT clock()) THEN 'running'
                WHEN j.state = 'running' THEN 'lost'
                WHEN j.state = 'parked' THEN 'parked:' || coalesce(j.code, j.reason, '')
                WHEN b.paused_at IS NOT NULL OR EXISTS (
                    SELECT 1 FROM pauses p
                    WHERE p.scope = 'queue' AND p.name = j.queue
                       OR p.scope = 'kind' AND p.name = j.kind
                       OR p.scope = 'application' AND p.name = (
                           SELECT k.application FROM kinds k WHERE k.name = j.kind)) THEN 'pause'
                WHEN j.aside IS NOT NULL THEN j.aside
                WHEN j.run_at > (SELECT clock()) THEN 'backoff'
                WHEN NOT EXISTS (
                    SELECT 1 FROM runners l
                    WHERE l.state = 'alive' AND l.lease_until >= (SELECT clock())
                      AND CAST(l.knows AS text) LIKE '%"documents.document@1"%') THEN 'no_runner'
                ELSE 'line' END AS why,
           CASE WHEN j.run_at > (SELECT clock()) THEN j.run_at END AS until
    FROM batches b JOIN jobs j ON j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id
    LEFT JOIN runners r ON r.boot = j.runner
    WHERE b.id = :execution AND j.state IN ('waiting', 'running', 'parked')) open
GROUP BY why ORDER BY count(*) DESC, why;

-- name: list_executions
-- A page of executions, the newest first.
SELECT v.id, v.projeto_id, v.nome, v.status, v.total, v.tentativas_retry, v.max_retries, v.geracao,
       v.criado_por, v.criado_em
FROM execucoes_classificacao v
WHERE (CAST(:before AS bigint) IS NULL OR v.id < :before)
  AND (CAST(:project AS bigint) IS NULL OR v.projeto_id = :project)
  AND (CAST(:status AS text) IS NULL OR v.status = :status)
ORDER BY v.id DESC LIMIT :n;

-- name: mark_stuck
-- It was seen stuck; once for each time it is.
UPDATE executions SET stuck_at = (SELECT clock())
WHERE id = :execution AND epoch = :epoch AND stuck_at IS NULL
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution) = 'TRAVADO'
RETURNING epoch;

-- name: name_documents
-- The jobs of an execution, each to its document: its payload says of which it is.
UPDATE documents SET execution = :execution, job = j.id
FROM jobs j, batches b
WHERE b.id = :execution AND j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id
  AND documents.id = CAST(j.payload ->> 'document' AS bigint);

-- name: name_origins
-- Of documents with the same content the first is the origin of the others.
UPDATE documents SET origin = (
    SELECT min(o.id) FROM documents o
    WHERE o.execution = documents.execution AND o.sha256 = documents.sha256)
WHERE execution = :execution AND EXISTS (
    SELECT 1 FROM documents o
    WHERE o.execution = documents.execution AND o.sha256 = documents.sha256
      AND o.id < documents.id);

-- name: reprocess_execution
-- A new generation of an execution, with a fresh budget; whoever saw an older one changes nothing.
UPDATE executions SET epoch = epoch + 1, generation = generation + 1, resumes = 0,
    reprocessed = :reprocessed, rules = :rules, moved_at = (SELECT clock()), stuck_at = NULL, failed_at = NULL,
    canceled_at = NULL, canceled_by = NULL,
    blocked_code = NULL, blocked_words = NULL, blocked_at = NULL
WHERE id = :execution AND generation = :generation
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution)
      IN ('CONCLUIDO', 'ERRO', 'TRAVADO')
RETURNING generation;

-- name: resume_execution
-- A new epoch of an execution that is stuck; whoever saw an older one changes nothing.
UPDATE executions SET epoch = epoch + 1, resumes = resumes + 1, moved_at = (SELECT clock()),
    stuck_at = NULL, failed_at = NULL
WHERE id = :execution AND epoch = :epoch AND (resumes < most_resumes OR :anyway = 1)
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution) IN ('TRAVADO', 'ERRO')
RETURNING epoch;

-- name: rules_of
-- By which rules an execution is classified, and those that its project has now.
SELECT e.rules, p.rules FROM executions e
LEFT JOIN document_projects p ON p.id = e.project AND p.removed_at IS NULL
WHERE e.id = :execution;

-- name: runner_lives
-- Whether a runner is alive that classifies documents.
SELECT 1 FROM runners
WHERE state = 'alive' AND lease_until >= (SELECT clock())
  AND CAST(knows AS text) LIKE '%"documents.document@1"%';

-- name: status_of
-- How an execution stands now, and by which numbers it may be moved.
SELECT v.status, v.epoca, v.geracao, v.tentativas_retry, v.max_retries, v.reprocessados,
       v.bloqueio_codigo
FROM execucoes_classificacao v WHERE v.id = :execution;

-- name: unblock_execution
-- Let the documents of an execution ask the service again, by these rules.
-- Whoever saw an older epoch changes nothing.
UPDATE executions SET blocked_code = NULL, blocked_words = NULL, blocked_at = NULL,
    epoch = epoch + 1, moved_at = (SELECT clock()), rules = :rules
WHERE id = :execution AND epoch = :epoch AND blocked_at IS NOT NULL
RETURNING epoch;
