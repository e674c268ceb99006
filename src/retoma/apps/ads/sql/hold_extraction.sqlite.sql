-- Hold the job that extracts a mission, before the mission: in the order its own story locks them.
-- Twin: the row is locked there; SQLite has one writer.
SELECT extraction FROM ads_missions WHERE id = :mission;
