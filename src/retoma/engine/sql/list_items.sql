-- The things of one pool, and who holds them.
SELECT name, value, vendor, state, reason, uses, failures, score, ready_at, used_at, job, scope
FROM pool_items WHERE pool = :pool ORDER BY name;
