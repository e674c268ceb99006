-- A page of the quotes of a lote, the newest first.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM quote_requests r
WHERE r.batch_request_id = :lote AND r.id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY r.id DESC LIMIT :n;
