-- Keep bytes once, however many jobs show them. Where they were only intended for a shelf, they move in.
INSERT INTO evidence (sha256, codec, size, bytes, used_at)
VALUES (:sha256, :codec, :size, :bytes, (SELECT clock()))
ON CONFLICT (sha256) DO UPDATE SET used_at = excluded.used_at,
    place = CASE WHEN evidence.bytes IS NULL AND evidence.stored_at IS NULL
                 THEN NULL ELSE evidence.place END,
    bytes = CASE WHEN evidence.bytes IS NULL AND evidence.stored_at IS NULL
                 THEN excluded.bytes ELSE evidence.bytes END;
