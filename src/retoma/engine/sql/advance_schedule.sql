-- Move a schedule past the tick that was seen; zero rows: somebody changed or paused it meanwhile.
UPDATE schedules SET next_at = :next_at
WHERE name = :name AND next_at = :was AND cron = :cron AND timezone = :timezone
  AND paused_at IS NULL
RETURNING name;
