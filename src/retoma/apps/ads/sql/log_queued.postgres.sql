-- A line of the log for each of these missions: it is in the queue.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
INSERT INTO ads_logs (mission, event, details, at)
SELECT value, 'mission_queued', CAST(:details AS json), (SELECT clock())
FROM json_array_elements_text(CAST(:missions AS json));
