-- What each runner has done to the jobs of a kind, those that beat last first.
SELECT r.name, r.boot, r.state, r.since, r.beat_at, (SELECT clock()), r.lease_until < (SELECT clock()), e.done,
       e.retried, e.failed, e.recovered, e.ms
FROM runners r JOIN (
    SELECT boot,
           sum(CASE WHEN event IN ('done', 'skipped') THEN n ELSE 0 END) AS done,
           sum(CASE WHEN event = 'failed' THEN n ELSE 0 END) AS retried,
           sum(CASE WHEN event IN ('buried', 'poisoned') THEN n ELSE 0 END) AS failed,
           sum(CASE WHEN event = 'lost' THEN n ELSE 0 END) AS recovered,
           sum(CASE WHEN event = 'done' THEN ms ELSE 0 END) AS ms
    FROM (SELECT boot, event, n, ms FROM runner_kinds WHERE kind = :kind
          UNION ALL
          SELECT runner, event, n, coalesce(ms, 0) FROM tallies
          WHERE kind = :kind AND event IS NOT NULL AND runner IS NOT NULL) told
    GROUP BY boot) e ON e.boot = r.boot
ORDER BY r.beat_at DESC, r.boot LIMIT :n;
