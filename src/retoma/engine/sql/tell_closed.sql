-- Take what was closed of late, once somebody had been told that it began, and mark that as told.
UPDATE alerts SET closed_told_at = (SELECT clock())
WHERE id IN (SELECT a.id FROM alerts a
             WHERE a.closed_told_at IS NULL AND a.closed_at IS NOT NULL
               AND a.closed_at > (SELECT clock_in(-CAST(:stale AS double precision)))
               AND a.raised_told_at IS NOT NULL
             ORDER BY a.closed_at LIMIT :bite)
  AND closed_told_at IS NULL
RETURNING id, subject, CASE WHEN silenced_until > (SELECT clock()) OR severity = 'info'
                            THEN 1 ELSE 0 END;
