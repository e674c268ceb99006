-- When an event was last told of a mission, and what time it is.
SELECT at, (SELECT clock()) FROM ads_logs WHERE mission = :mission AND event = :event
ORDER BY id DESC LIMIT 1;
