-- The same by the names of runners that are still known.
SELECT r.name, each_.event, sum(each_.n), sum(each_.ms) FROM (
    SELECT boot, event, n, ms FROM runner_kinds WHERE kind = :kind
    UNION ALL
    SELECT runner, event, n, coalesce(ms, 0) FROM tallies
    WHERE kind = :kind AND event IS NOT NULL AND runner IS NOT NULL) each_
JOIN runners r ON r.boot = each_.boot
GROUP BY r.name, each_.event;
