-- Add things to a pool, or change what they are; who holds one holds it on. Those that changed.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO pool_items (pool, name, value, vendor)
SELECT :pool, o.value ->> 'name', o.value -> 'value', o.value ->> 'vendor'
FROM json_each(:rows) o
WHERE true
ON CONFLICT (pool, name) DO UPDATE SET value = excluded.value, vendor = excluded.vendor
WHERE pool_items.value <> excluded.value OR pool_items.vendor <> excluded.vendor
RETURNING name;
