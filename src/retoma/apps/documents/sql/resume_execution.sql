-- A new epoch of an execution that is stuck; whoever saw an older one changes nothing.
UPDATE executions SET epoch = epoch + 1, resumes = resumes + 1, moved_at = (SELECT clock()),
    stuck_at = NULL, failed_at = NULL
WHERE id = :execution AND epoch = :epoch AND (resumes < most_resumes OR :anyway = 1)
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution) IN ('TRAVADO', 'ERRO')
RETURNING epoch;
