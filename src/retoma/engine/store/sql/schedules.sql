-- name: advance_schedule
-- Move a schedule past the tick that was seen; zero rows: somebody changed or paused it meanwhile.
UPDATE schedules SET next_at = :next_at
WHERE name = :name AND next_at = :was AND cron = :cron AND timezone = :timezone
  AND paused_at IS NULL
RETURNING name;

-- name: declare_schedule
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

-- name: due_schedules
-- What wants to tick, the longest due first.
SELECT name, kind, version, queue, priority, cron, timezone, payload, missed, limits, next_at
FROM schedules
WHERE paused_at IS NULL AND next_at <= (SELECT clock())
ORDER BY next_at, name LIMIT :limit;

-- name: keep_tick
-- This tick is ours to submit; zero rows: it has been.
INSERT INTO ticks (schedule, at) VALUES (:schedule, :at)
ON CONFLICT (schedule, at) DO NOTHING
RETURNING at;

-- name: list_schedules
-- What ticks, by name; of one if it is named.
SELECT s.name, s.kind, s.version, s.queue, s.priority, s.cron, s.timezone, s.payload, s.missed,
       s.limits, s.paused_at, s.next_at,
       (SELECT max(t.at) FROM ticks t WHERE t.schedule = s.name),
       (SELECT t.job FROM ticks t WHERE t.schedule = s.name ORDER BY t.at DESC LIMIT 1)
FROM schedules s
WHERE CAST(:name AS text) IS NULL OR s.name = :name
ORDER BY s.name;

-- name: name_tick
-- Which job a tick submitted.
UPDATE ticks SET job = :job WHERE schedule = :schedule AND at = :at;

-- name: next_tick
-- When the next schedule ticks, and what time it is.
SELECT min(next_at), (SELECT clock()) FROM schedules WHERE paused_at IS NULL;

-- name: pause_schedule
-- A schedule stops ticking; zero rows: it had, or there is none.
UPDATE schedules SET paused_at = (SELECT clock()) WHERE name = :name AND paused_at IS NULL
RETURNING name;

-- name: remove_schedule
-- A schedule is no more; its ticks stay until they are old.
DELETE FROM schedules WHERE name = :name
RETURNING name;

-- name: unpause_schedule
-- A schedule ticks again, from its next time on; zero rows: it did already, or there is none.
UPDATE schedules SET paused_at = NULL, next_at = :next_at
WHERE name = :name AND paused_at IS NOT NULL
RETURNING name;
