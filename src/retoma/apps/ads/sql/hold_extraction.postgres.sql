-- Hold the job that extracts a mission, before the mission: in the order its own story locks them.
-- Twin: the row is locked here; SQLite has one writer.
SELECT j.id FROM jobs j
WHERE j.id = (SELECT m.extraction FROM ads_missions m WHERE m.id = :mission)
FOR UPDATE;
