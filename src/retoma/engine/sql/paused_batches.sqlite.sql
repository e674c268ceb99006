-- Which of these batches are paused; so they stay until what is held of them has been set aside.
-- Twin: rows are locked there; SQLite has one writer.
SELECT b.id FROM json_each(:batches) o CROSS JOIN batches b ON b.id = o.value
WHERE b.paused_at IS NOT NULL;
