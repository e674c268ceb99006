-- The next quotes of a lote, in the order in which they were asked for.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM quote_requests r
WHERE r.batch_request_id = :lote AND r.id > :after
ORDER BY r.id LIMIT :n;
