-- Which of these batches are paused; so they stay until what is held of them has been set aside.
-- Twin: rows are locked here, so that whoever lets a batch go on finds all that was set aside.
SELECT id FROM batches
WHERE paused_at IS NOT NULL
  AND id = ANY(ARRAY(SELECT CAST(json_array_elements_text(CAST(:batches AS json)) AS bigint)))
ORDER BY id FOR SHARE;
