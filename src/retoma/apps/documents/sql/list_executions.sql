-- A page of executions, the newest first.
SELECT v.id, v.projeto_id, v.nome, v.status, v.total, v.tentativas_retry, v.max_retries, v.geracao,
       v.criado_por, v.criado_em
FROM execucoes_classificacao v
WHERE (CAST(:before AS bigint) IS NULL OR v.id < :before)
  AND (CAST(:project AS bigint) IS NULL OR v.projeto_id = :project)
  AND (CAST(:status AS text) IS NULL OR v.status = :status)
ORDER BY v.id DESC LIMIT :n;
