-- One quote, as the document's table has it, with its job.
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.last_heartbeat, r.worker_id, r.resume_data, r.started_at, r.completed_at, r.attempt_number,
       r.claude_payload_json, r.google_shopping_response_json, r.result, r.error_code, r.created_by,
       r.created_at, q.job
FROM quote_requests r JOIN quotes q ON q.id = r.id WHERE r.id = :quote;
