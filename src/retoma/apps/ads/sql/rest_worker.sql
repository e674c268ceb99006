-- A worker without a session: idle, or in error until it has rested.
UPDATE ads_workers
SET status = CASE WHEN :failed = 1 THEN 'error' ELSE 'idle' END, session_count = 0, mission = NULL,
    failures = CASE WHEN :failed = 1 THEN failures + 1 ELSE 0 END,
    rests_until = CASE WHEN :failed = 1 THEN clock_in(:rest) END, updated_at = (SELECT clock())
WHERE id = :worker
RETURNING failures;
