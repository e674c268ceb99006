-- A limit: how many may run, and how many do.
SELECT cap, used FROM limits WHERE key = :key;
