-- A limit: how many may run, and how many do.
SELECT coalesce(by_hand, cap), used FROM limits WHERE key = :key;
