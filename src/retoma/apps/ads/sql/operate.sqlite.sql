-- name: hold_session
-- Hold the job that drives a worker's session, before the session: in the order its own story locks them.
-- Twin: the row is locked there; SQLite has one writer.
SELECT s.id, s.proxy, j.id, j.state, w.status
FROM ads_sessions s JOIN jobs j ON j.id = s.job JOIN ads_workers w ON w.id = s.worker
WHERE s.worker = :worker AND s.ended_at IS NULL;
