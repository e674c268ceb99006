-- Missions under way, the oldest first; how far, as the job that has each in its hands tells it.
SELECT m.id, m.checkpoint, m.worker_id, w.name, m.proxy_used, m.ads_count,
       m.session_retries + m.scrape_retries + m.writer_retries, m.canceled_by, m.started_at, j.id,
       j.state, j.progress, j.note
FROM ads_missions m
LEFT JOIN ads_workers w ON w.id = m.worker_id
LEFT JOIN jobs j ON j.id = coalesce(m.storage, m.extraction)
WHERE m.status = 'running' AND m.deleted_at IS NULL
ORDER BY m.id LIMIT :n;
