-- Let go of a thing, by whoever holds it: this job, by this epoch where the hold is an attempt's.
-- What works has no failures; what fails twice in a row by one and the same hand has one.
UPDATE pool_items SET job = NULL, epoch = NULL, generation = NULL, scope = NULL,
    ready_at = clock_in((SELECT cool_down FROM pools p WHERE p.name = pool_items.pool)),
    failures = CASE WHEN :worked = 1 THEN 0
                    WHEN failed_by = :by AND failures > 0 THEN failures
                    ELSE failures + 1 END,
    failed_by = CASE WHEN :worked = 1 THEN NULL ELSE :by END,
    failed_from = CASE WHEN :worked = 1 THEN NULL ELSE coalesce(failed_from, (SELECT clock())) END,
    worked_at = CASE WHEN :worked = 1 THEN (SELECT clock()) ELSE worked_at END,
    score = 0.8 * score + 0.2 * :worked
WHERE id = :item AND job = :job AND (scope <> 'attempt' OR epoch = :epoch)
RETURNING pool, name, failures;
