-- Missions in somebody's hands, in the order in which their jobs are locked.
SELECT id FROM ads_missions WHERE status = 'running' AND deleted_at IS NULL ORDER BY extraction;
