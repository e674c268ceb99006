-- What was told of a mission and of the sessions that served it, as mission_logs has it, in order.
SELECT at, event, details FROM (
    SELECT l.at, l.id, l.event, l.details FROM ads_logs l WHERE l.mission = :mission
    UNION ALL
    SELECT l.at, l.id, l.event, l.details
    FROM ads_served v JOIN ads_logs l ON l.session = v.session
    WHERE v.mission = :mission AND l.mission IS NULL AND (v.left_at IS NULL OR l.at <= v.left_at)
) told
ORDER BY at, id LIMIT 10000;
