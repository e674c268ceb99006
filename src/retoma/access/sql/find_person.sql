-- One person who is still here.
SELECT id, role FROM people WHERE name = :name AND removed_at IS NULL;
