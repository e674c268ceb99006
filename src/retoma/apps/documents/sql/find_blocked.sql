-- Executions that the service rejects and that have documents left.
SELECT e.id, e.name, e.blocked_code, e.blocked_words
FROM executions e JOIN execucoes_classificacao v ON v.id = e.id
WHERE e.blocked_at IS NOT NULL AND v.status <> 'CONCLUIDO'
ORDER BY e.id LIMIT :n;
