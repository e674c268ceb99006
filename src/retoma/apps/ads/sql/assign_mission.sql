-- A mission has a worker (§6.4); nothing comes back where it is no longer to be done.
UPDATE ads_missions
SET status = 'running', checkpoint = 'extracao', worker_id = :worker, session = :session,
    proxy_used = :proxy, worker_job_id = NULL, started_at = coalesce(started_at, (SELECT clock()))
WHERE id = :mission AND extraction = :job AND status IN ('queued', 'running')
RETURNING id;
