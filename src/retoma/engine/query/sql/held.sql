-- name: funnel
-- What runs and what is parked, by where it stands, with the time of the one longest there.
-- Bounded by slots and by what people have put aside; history is not read.
SELECT kind, checkpoint, state, count(*), min(coalesce(progress_at, started_at, created_at)),
       (SELECT clock())
FROM (
    SELECT kind, checkpoint, state, progress_at, started_at, created_at
    FROM jobs WHERE runner > ''
    UNION ALL
    SELECT j.kind, j.checkpoint, j.state, j.progress_at, j.started_at, j.created_at
    FROM (SELECT DISTINCT kind FROM counts WHERE batch = -1
          UNION SELECT kind FROM tallies) k
    CROSS JOIN jobs j
    WHERE j.kind = k.kind AND j.state = 'parked'
      AND j.state IN ('parked', 'skipped', 'dead', 'canceled')
) here
WHERE CAST(:kind AS text) IS NULL OR kind = :kind
GROUP BY kind, checkpoint, state
ORDER BY kind, state, count(*) DESC, checkpoint;
