-- A new generation of an execution, with a fresh budget; whoever saw an older one changes nothing.
UPDATE executions SET epoch = epoch + 1, generation = generation + 1, resumes = 0,
    reprocessed = :reprocessed, rules = :rules, moved_at = (SELECT clock()), stuck_at = NULL, failed_at = NULL,
    canceled_at = NULL, canceled_by = NULL,
    blocked_code = NULL, blocked_words = NULL, blocked_at = NULL
WHERE id = :execution AND generation = :generation
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution)
      IN ('CONCLUIDO', 'ERRO', 'TRAVADO')
RETURNING generation;
