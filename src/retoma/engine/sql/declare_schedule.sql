-- Write down a schedule as the code has it; what was paused stays paused.
INSERT INTO schedules (name, kind, version, queue, priority, cron, timezone, payload, missed,
    limits, next_at)
VALUES (:name, :kind, :version, :queue, :priority, :cron, :timezone, :payload, :missed,
    :limits, :next_at)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, version = excluded.version,
    queue = excluded.queue, priority = excluded.priority, payload = excluded.payload,
    missed = excluded.missed, limits = excluded.limits, cron = excluded.cron, timezone = excluded.timezone,
    next_at = CASE WHEN schedules.cron = excluded.cron AND schedules.timezone = excluded.timezone
                   THEN schedules.next_at ELSE excluded.next_at END;
