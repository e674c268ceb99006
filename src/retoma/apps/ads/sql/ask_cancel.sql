-- Who wants a mission canceled. In the writer's hands it is canceled at once: the writer is only followed.
UPDATE ads_missions
SET canceled_by = coalesce(canceled_by, :actor),
    status = CASE WHEN checkpoint = 'armazenamento' THEN 'canceled' ELSE status END,
    finished_at = CASE WHEN checkpoint = 'armazenamento' THEN (SELECT clock()) END
WHERE id = :mission AND deleted_at IS NULL AND status IN ('queued', 'running')
RETURNING extraction, checkpoint;
