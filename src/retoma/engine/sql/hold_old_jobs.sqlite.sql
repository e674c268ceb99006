-- Those of these jobs that are still to go; nobody moves them before this transaction ends.
-- Twin: rows are locked there; here nobody else writes meanwhile.
SELECT id FROM jobs
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND (state IN ('done', 'skipped', 'canceled') AND ended_at < :done_before
       OR state = 'dead' AND (ended_at < :dead_before OR discarded_at < :done_before))
ORDER BY id;
