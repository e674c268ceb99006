-- The rules of one pool.
SELECT name, pick, use_cap, cool_down, off_after, healthy FROM pools WHERE name = :pool;
