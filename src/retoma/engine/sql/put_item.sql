-- Add a thing to a pool, or change what it is; who holds it holds it on.
INSERT INTO pool_items (pool, name, value, vendor) VALUES (:pool, :name, :value, :vendor)
ON CONFLICT (pool, name) DO UPDATE SET value = excluded.value, vendor = excluded.vendor;
