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
