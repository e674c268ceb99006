-- name: stuck
-- Jobs that are held and do not move: no progress for a while, or the lease of their runner is over.
-- Twin: the later of two times is greatest() here, max() there.
SELECT id, kind, batch, checkpoint, boot, name, moved_at, orphan, (SELECT clock()) FROM (
    SELECT j.id, j.kind, j.batch, j.checkpoint, j.runner AS boot, r.name,
           greatest(j.progress_at, j.started_at) AS moved_at,
           r.boot IS NULL OR r.state NOT IN ('alive', 'leaving')
               OR r.lease_until < (SELECT clock()) AS orphan
    FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
    WHERE j.runner > ''
      AND (CAST(:kind AS text) IS NULL OR j.kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR j.batch = :batch)
) held
WHERE orphan OR moved_at < (SELECT clock_in(-CAST(:quiet AS double precision)))
ORDER BY moved_at, id LIMIT :limit;
