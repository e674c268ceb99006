-- The writer that is healthy and has least to do; nothing where there is none.
SELECT w.id FROM ads_writers w
WHERE w.active = TRUE AND w.deleted_at IS NULL
ORDER BY coalesce(w.last_test_ok, TRUE) DESC,
         (SELECT count(*) FROM ads_missions m WHERE m.writer_id = w.id AND m.status = 'running'
              AND m.checkpoint = 'armazenamento'), w.id
LIMIT 1;
