-- One more outage in a row of what a breaker guards.
-- At its threshold, or when a probe fails, it opens and rests.
UPDATE breakers SET failures = failures + 1, reason = :reason,
    since = CASE WHEN state = 'closed' AND failures + 1 >= threshold THEN (SELECT clock())
                 ELSE since END,
    probe_at = CASE WHEN state = 'probing' OR failures + 1 >= threshold THEN clock_in(rest)
                    ELSE probe_at END,
    state = CASE WHEN state = 'probing' OR failures + 1 >= threshold THEN 'open' ELSE state END,
    job = NULL, epoch = NULL
WHERE name = :name AND (state = 'closed' OR state = 'probing' AND job = :job AND epoch = :epoch)
RETURNING state;
