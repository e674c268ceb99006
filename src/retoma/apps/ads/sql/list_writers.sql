-- A page of writers by their ids, as the document shows them.
SELECT w.id, w.name, w.url, w.active, w.last_test_at, w.last_test_ok, w.last_test_ms,
       w.last_test_error, b.since, b.reason
FROM ads_writers w LEFT JOIN breakers b ON b.name = 'ads.writer.' || w.id AND b.state <> 'closed'
WHERE w.deleted_at IS NULL AND w.id > :after
  AND (CAST(:id AS text) IS NULL OR w.id = :id)
ORDER BY w.id LIMIT :n;
