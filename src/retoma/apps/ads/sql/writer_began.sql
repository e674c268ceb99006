-- When the writer last began with the ads of a mission, and what time it is.
SELECT at, (SELECT clock()) FROM ads_logs WHERE mission = :mission AND event = 'writer_started'
ORDER BY id DESC LIMIT 1;
