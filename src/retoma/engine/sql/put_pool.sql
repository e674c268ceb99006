-- Declare a pool, or change its rules; its things stay.
INSERT INTO pools (name, pick, use_cap, cool_down, off_after, healthy)
VALUES (:name, :pick, :use_cap, :cool_down, :off_after, :healthy)
ON CONFLICT (name) DO UPDATE SET pick = excluded.pick, use_cap = excluded.use_cap,
    cool_down = excluded.cool_down, off_after = excluded.off_after, healthy = excluded.healthy;
