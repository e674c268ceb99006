-- name: began
-- When an event was last told of a mission, and what time it is.
SELECT at, (SELECT clock()) FROM ads_logs WHERE mission = :mission AND event = :event
ORDER BY id DESC LIMIT 1;

-- name: last_progress
-- How often progress of this sort was told of a mission, what was told last and when; and now.
SELECT (SELECT count(*) FROM ads_logs WHERE mission = :mission AND event = :event),
       l.details, l.at, (SELECT clock())
FROM ads_orchestrator o
LEFT JOIN ads_logs l ON l.id = (SELECT max(id) FROM ads_logs WHERE mission = :mission AND event = :event);

-- name: log
-- One line of what mission_logs tells: of a mission, or of a session and so of all it served.
INSERT INTO ads_logs (mission, session, event, details, at)
VALUES (:mission, :session, :event, :details, (SELECT clock()));

-- name: next_numbers
-- Take so many numbers of a sort; the last of them.
UPDATE ads_numbers SET last = last + :n WHERE name = :name RETURNING last;
