-- Close what has only happened and has been shown for long enough, a bite of it.
UPDATE alerts SET closed_at = (SELECT clock())
WHERE id IN (SELECT a.id FROM alerts a
             WHERE a.rule = :rule AND a.closed_at IS NULL
               AND a.since < (SELECT clock_in(-CAST(:shown AS double precision)))
             ORDER BY a.subject LIMIT :bite)
  AND closed_at IS NULL;
