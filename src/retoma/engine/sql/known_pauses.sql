-- What is paused, and which kinds are because their application is.
-- Each row begins with how often pauses have changed: so a claim says that it has heard of all of them.
SELECT m.value, p.what, p.name
FROM meta m LEFT JOIN (
    SELECT scope AS what, name FROM pauses
    UNION ALL
    SELECT 'kind of application', k.name FROM pauses a JOIN kinds k ON k.application = a.name
    WHERE a.scope = 'application'
) p ON true
WHERE m.name = 'pauses';
