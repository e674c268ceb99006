-- The quotes of these jobs, those of the newest first; only in this status and of this lote, where they are given.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at, q.job
FROM quotes q JOIN quote_requests r ON r.id = q.id
WHERE q.job IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:jobs AS json)))
  AND (CAST(:status AS text) IS NULL OR r.status = :status)
  AND (CAST(:lote AS bigint) IS NULL OR r.batch_request_id = :lote)
ORDER BY q.job DESC;
