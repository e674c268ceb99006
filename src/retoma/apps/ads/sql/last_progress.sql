-- How often progress of this sort was told of a mission, what was told last and when; and now.
SELECT (SELECT count(*) FROM ads_logs WHERE mission = :mission AND event = :event),
       l.details, l.at, (SELECT clock())
FROM ads_orchestrator o
LEFT JOIN ads_logs l ON l.id = (SELECT max(id) FROM ads_logs WHERE mission = :mission AND event = :event);
