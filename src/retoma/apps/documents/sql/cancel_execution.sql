-- Somebody wants no more of an execution; it goes on only to end.
UPDATE executions SET epoch = epoch + 1, canceled_at = (SELECT clock()), canceled_by = :actor,
    moved_at = (SELECT clock()), stuck_at = NULL, failed_at = NULL,
    blocked_code = NULL, blocked_words = NULL, blocked_at = NULL
WHERE id = :execution AND canceled_at IS NULL
RETURNING epoch;
