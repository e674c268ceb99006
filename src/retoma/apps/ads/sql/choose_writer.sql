-- The writer that is there, healthy and has least to do, and whether it was away; nothing where there is none.
SELECT w.id, coalesce(b.state, 'closed') <> 'closed'
FROM ads_writers w LEFT JOIN breakers b ON b.name = 'ads.writer.' || w.id
WHERE w.active = TRUE AND w.deleted_at IS NULL
ORDER BY CASE coalesce(b.state, 'closed') WHEN 'closed' THEN 0 ELSE 1 END,
         coalesce(w.last_test_ok, TRUE) DESC,
         (SELECT count(*) FROM ads_missions m WHERE m.writer_id = w.id AND m.status = 'running'
              AND m.checkpoint = 'armazenamento'), w.id
LIMIT 1;
