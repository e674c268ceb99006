-- Why what is open of an execution does not end now: how many for each reason, and until when they wait.
SELECT why, count(*), min(until) FROM (
    SELECT CASE WHEN j.state = 'running' AND r.state IN ('alive', 'leaving')
                     AND r.lease_until >= (SELECT clock()) THEN 'running'
                WHEN j.state = 'running' THEN 'lost'
                WHEN j.state = 'parked' THEN 'parked:' || coalesce(j.code, j.reason, '')
                WHEN b.paused_at IS NOT NULL OR EXISTS (
                    SELECT 1 FROM pauses p
                    WHERE p.scope = 'queue' AND p.name = j.queue
                       OR p.scope = 'kind' AND p.name = j.kind
                       OR p.scope = 'application' AND p.name = (
                           SELECT k.application FROM kinds k WHERE k.name = j.kind)) THEN 'pause'
                WHEN j.aside IS NOT NULL THEN j.aside
                WHEN j.run_at > (SELECT clock()) THEN 'backoff'
                WHEN NOT EXISTS (
                    SELECT 1 FROM runners l
                    WHERE l.state = 'alive' AND l.lease_until >= (SELECT clock())
                      AND CAST(l.knows AS text) LIKE '%"documents.document@1"%') THEN 'no_runner'
                ELSE 'line' END AS why,
           CASE WHEN j.run_at > (SELECT clock()) THEN j.run_at END AS until
    FROM batches b JOIN jobs j ON j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id
    LEFT JOIN runners r ON r.boot = j.runner
    WHERE b.id = :execution AND j.state IN ('waiting', 'running', 'parked')) open
GROUP BY why ORDER BY count(*) DESC, why;
