-- Who has a mission, by name, and what the job that has it in its hands says.
SELECT w.name, r.name, j.id, j.state = 'parked', j.note, j.reason
FROM ads_missions m
LEFT JOIN ads_workers w ON w.id = m.worker_id
LEFT JOIN ads_writers r ON r.id = m.writer_id
LEFT JOIN jobs j ON j.id = coalesce(m.storage, m.extraction) AND j.state IN ('waiting', 'running', 'parked')
WHERE m.id = :mission;
