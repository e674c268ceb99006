-- What ticks, by name; of one if it is named.
SELECT s.name, s.kind, s.version, s.queue, s.priority, s.cron, s.timezone, s.payload, s.missed,
       s.limits, s.paused_at, s.next_at,
       (SELECT max(t.at) FROM ticks t WHERE t.schedule = s.name),
       (SELECT t.job FROM ticks t WHERE t.schedule = s.name ORDER BY t.at DESC LIMIT 1)
FROM schedules s
WHERE CAST(:name AS text) IS NULL OR s.name = :name
ORDER BY s.name;
