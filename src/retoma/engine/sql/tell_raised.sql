-- Take what was raised of late and has been told to nobody yet, and mark it as told.
-- Of what nobody hears that it began, nobody hears that it is over.
UPDATE alerts SET raised_told_at = (SELECT clock()),
    closed_told_at = CASE WHEN silenced_until > (SELECT clock()) THEN (SELECT clock()) END
WHERE id IN (SELECT a.id FROM alerts a
             WHERE a.raised_told_at IS NULL
               AND a.since > (SELECT clock_in(-CAST(:stale AS double precision)))
             ORDER BY a.since LIMIT :bite)
  AND raised_told_at IS NULL
RETURNING id, subject, CASE WHEN silenced_until > (SELECT clock()) THEN 1 ELSE 0 END;
