-- Whether something that has only happened has been shown for long enough.
SELECT 1 FROM alerts a
WHERE a.rule = :rule AND a.closed_at IS NULL
  AND a.since < (SELECT clock_in(-CAST(:shown AS double precision)))
LIMIT 1;
