-- It was seen stuck; once for each time it is.
UPDATE executions SET stuck_at = (SELECT clock())
WHERE id = :execution AND epoch = :epoch AND stuck_at IS NULL
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution) = 'TRAVADO'
RETURNING epoch;
