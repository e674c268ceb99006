-- A worker without a session: idle, or in error until it has rested; `counted`: that is one more failure.
UPDATE ads_workers
SET status = CASE WHEN :counted = 1 AND CAST(:rest AS double precision) IS NOT NULL THEN 'error' ELSE 'idle' END,
    session_count = 0, mission = NULL,
    failures = CASE WHEN :counted = 1 THEN failures + 1
                    WHEN CAST(:rest AS double precision) IS NOT NULL THEN failures ELSE 0 END,
    rests_until = CASE WHEN CAST(:rest AS double precision) IS NOT NULL
                       THEN clock_in(CAST(:rest AS double precision)) END, updated_at = (SELECT clock())
WHERE id = :worker
RETURNING failures;
