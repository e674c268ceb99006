-- Add things to a pool, or change what they are; who holds one holds it on. Those that changed.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO pool_items (pool, name, value, vendor)
SELECT :pool, t.name, t.value, t.vendor
FROM json_to_recordset(CAST(:rows AS json)) AS t(name text, value json, vendor text)
ORDER BY t.name COLLATE "C"
ON CONFLICT (pool, name) DO UPDATE SET value = excluded.value, vendor = excluded.vendor
WHERE CAST(pool_items.value AS text) <> CAST(excluded.value AS text)
   OR pool_items.vendor <> excluded.vendor
RETURNING name;
