-- The names of everybody who is here.
SELECT name FROM people WHERE removed_at IS NULL;
