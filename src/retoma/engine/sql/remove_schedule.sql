-- A schedule is no more; its ticks stay until they are old.
DELETE FROM schedules WHERE name = :name
RETURNING name;
