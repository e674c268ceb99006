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
