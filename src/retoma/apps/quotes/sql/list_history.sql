-- A page of the quotes that were taken over as history, in a status, the newest first.
-- Materialized, or the order by id is taken from the primary key, past everything in another status; a plus, or
-- SQLite goes through all that has no job.
WITH history AS MATERIALIZED (
    SELECT id FROM quotes
    WHERE was IS NOT NULL AND (was ->> 'status') = :status AND +job IS NULL
      AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
      AND (CAST(:lote AS bigint) IS NULL OR lote = :lote)
    ORDER BY id DESC LIMIT :n
)
SELECT r.id, r.batch_request_id, r.codigo, r.tipo, r.descricao, r.status, r.processing_checkpoint,
       r.worker_id, r.started_at, r.completed_at, r.attempt_number, r.result, r.error_code,
       r.created_at
FROM history h JOIN quote_requests r ON r.id = h.id
ORDER BY r.id DESC;
