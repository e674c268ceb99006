-- A page of workers by their ids, as the document shows them; what becomes of the session each has.
SELECT w.id, w.name, w.url, w.storage_domain, w.status, w.session_count, w.mission, s.proxy, w.active,
       w.last_test_at, w.last_test_ok, w.last_test_ms, w.last_test_error, w.rests_until, s.id, j.id,
       j.state, j.note, s.silent_since
FROM ads_workers w
LEFT JOIN ads_sessions s ON s.worker = w.id AND s.ended_at IS NULL
LEFT JOIN jobs j ON j.id = s.job
WHERE w.deleted_at IS NULL AND w.id > :after
  AND (CAST(:id AS text) IS NULL OR w.id = :id)
ORDER BY w.id LIMIT :n;
