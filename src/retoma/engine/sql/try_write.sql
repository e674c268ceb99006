-- Meet whatever a write would meet, a lack of room included; forget_try takes it back at once.
INSERT INTO evidence (sha256, codec, size, bytes, used_at)
VALUES (:name, 'probe', 0, :filler, (SELECT clock()));
