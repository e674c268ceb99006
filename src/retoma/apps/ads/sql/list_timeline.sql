-- What was told of a mission, in order (§10.3).
SELECT timestamp, event, details FROM mission_logs WHERE mission_id = :mission
ORDER BY timestamp, id LIMIT 10000;
