-- The bytes are where the intent said, or in the database by now. Zero rows: the intent is gone.
UPDATE evidence SET stored_at = CASE WHEN place IS NULL THEN stored_at
                                     ELSE coalesce(stored_at, (SELECT clock())) END,
    used_at = (SELECT clock())
WHERE sha256 = :sha256 AND (place = :place OR bytes IS NOT NULL)
RETURNING sha256;
