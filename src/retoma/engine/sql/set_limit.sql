-- A person says how many may run: it holds over what the code says. The room there is now.
INSERT INTO limits (key, cap, by_hand) VALUES (:key, :cap, :cap)
ON CONFLICT (key) DO UPDATE SET by_hand = excluded.by_hand
RETURNING coalesce(by_hand, cap) - used;
