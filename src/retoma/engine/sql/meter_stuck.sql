-- How many jobs of each kind are held and do not move. Bounded by slots; history is not read.
SELECT j.kind, count(*)
FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
WHERE j.runner > ''
  AND (r.boot IS NULL OR r.state NOT IN ('alive', 'leaving') OR r.lease_until < (SELECT clock())
       OR j.started_at < (SELECT clock_in(-CAST(:quiet AS double precision)))
          AND (j.progress_at IS NULL
               OR j.progress_at < (SELECT clock_in(-CAST(:quiet AS double precision)))))
GROUP BY j.kind;
