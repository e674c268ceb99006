-- What each worker has brought home of late. Whoever had the mission then is credited, not whoever has it now.
SELECT w.id, w.name, count(*) FILTER (WHERE told.event = 'scrape_completed'),
       count(*) FILTER (WHERE told.event = 'scrape_empty'),
       count(*) FILTER (WHERE told.event = 'scrape_failed'),
       avg(told.took) FILTER (WHERE told.event = 'scrape_completed'),
       max(told.took) FILTER (WHERE told.event = 'scrape_completed'),
       coalesce(sum(told.ads) FILTER (WHERE told.event = 'scrape_completed'), 0)
FROM (
    SELECT l.event, CAST(l.details ->> 'duration_ms' AS double precision) AS took,
           CAST(l.details ->> 'ads_count' AS integer) AS ads,
           coalesce(l.details ->> 'worker_id', (
               SELECT a.details ->> 'worker_id' FROM ads_logs a
               WHERE a.mission = l.mission AND a.event = 'mission_assigned' AND a.id < l.id
               ORDER BY a.id DESC LIMIT 1), m.worker_id) AS worker
    FROM ads_logs l JOIN ads_missions m ON m.id = l.mission
    WHERE l.event IN ('scrape_completed', 'scrape_empty', 'scrape_failed') AND l.at > clock_in(:ago)
) told
JOIN ads_workers w ON w.id = told.worker
GROUP BY w.id, w.name
ORDER BY w.id;
