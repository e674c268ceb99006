-- Let the documents of an execution ask the service again, by these rules.
-- Whoever saw an older epoch changes nothing.
UPDATE executions SET blocked_code = NULL, blocked_words = NULL, blocked_at = NULL,
    epoch = epoch + 1, moved_at = (SELECT clock()), rules = :rules
WHERE id = :execution AND epoch = :epoch AND blocked_at IS NOT NULL
RETURNING epoch;
