-- What wants to tick, the longest due first.
SELECT name, kind, version, queue, priority, cron, timezone, payload, missed, limits, next_at
FROM schedules
WHERE paused_at IS NULL AND next_at <= (SELECT clock())
ORDER BY next_at, name LIMIT :limit;
