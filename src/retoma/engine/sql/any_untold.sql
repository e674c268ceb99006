-- Whether something was raised or closed of late of which nobody has been told yet.
SELECT 1 WHERE EXISTS (
    SELECT 1 FROM alerts a
    WHERE a.raised_told_at IS NULL
      AND a.since > (SELECT clock_in(-CAST(:stale AS double precision))))
OR EXISTS (
    SELECT 1 FROM alerts a
    WHERE a.closed_told_at IS NULL AND a.closed_at IS NOT NULL AND a.raised_told_at IS NOT NULL
      AND a.closed_at > (SELECT clock_in(-CAST(:stale AS double precision))));
