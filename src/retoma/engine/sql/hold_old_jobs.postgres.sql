-- Those of these jobs that are still to go; nobody moves them before this transaction ends.
-- Twin: rows are locked here; there nobody else writes meanwhile.
SELECT id FROM jobs
WHERE id = ANY(ARRAY(SELECT CAST(job AS bigint)
                     FROM json_array_elements_text(CAST(:jobs AS json)) AS j(job)))
  AND (state IN ('done', 'skipped', 'canceled') AND ended_at < :done_before
       OR state = 'dead' AND (ended_at < :dead_before OR discarded_at < :done_before))
ORDER BY id FOR UPDATE SKIP LOCKED;
