-- It is stuck, was seen so before, and may not be resumed once more: only an admin sets it going.
UPDATE executions SET failed_at = (SELECT clock())
WHERE id = :execution AND epoch = :epoch AND failed_at IS NULL AND stuck_at IS NOT NULL
  AND resumes >= most_resumes
  AND (SELECT v.status FROM execucoes_classificacao v WHERE v.id = :execution) = 'TRAVADO'
RETURNING epoch;
