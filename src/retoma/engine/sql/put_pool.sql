-- Declare a pool, or change its rules; its things stay. Nothing comes back where nothing changed.
INSERT INTO pools (name, pick, use_cap, cool_down, off_after, healthy)
VALUES (:name, :pick, :use_cap, :cool_down, :off_after, :healthy)
ON CONFLICT (name) DO UPDATE SET pick = excluded.pick, use_cap = excluded.use_cap,
    cool_down = excluded.cool_down, off_after = excluded.off_after, healthy = excluded.healthy
WHERE pools.pick <> excluded.pick OR pools.use_cap IS DISTINCT FROM excluded.use_cap
   OR pools.cool_down <> excluded.cool_down OR pools.off_after IS DISTINCT FROM excluded.off_after
   OR pools.healthy <> excluded.healthy
RETURNING name;
