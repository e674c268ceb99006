-- A line of the log for each of these missions: it is in the queue.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
INSERT INTO ads_logs (mission, event, details, at)
SELECT value, 'mission_queued', :details, (SELECT clock()) FROM json_each(:missions);
