-- A schedule ticks again, from its next time on; zero rows: it did already, or there is none.
UPDATE schedules SET paused_at = NULL, next_at = :next_at
WHERE name = :name AND paused_at IS NOT NULL
RETURNING name;
