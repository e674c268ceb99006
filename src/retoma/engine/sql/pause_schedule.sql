-- A schedule stops ticking; zero rows: it had, or there is none.
UPDATE schedules SET paused_at = (SELECT clock()) WHERE name = :name AND paused_at IS NULL
RETURNING name;
