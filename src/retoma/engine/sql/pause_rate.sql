-- Count refused calls, and permit none for so many seconds: tokens are counted from the end of the pause.
UPDATE rates SET refused = refused + :refused, refused_at = (SELECT clock()),
    tokens = CASE WHEN tokens < 0 THEN tokens ELSE 0 END,
    at = CASE WHEN at < clock_in(:pause) THEN clock_in(:pause) ELSE at END,
    looked_at = CASE WHEN looked_at < clock_in(:pause) THEN clock_in(:pause) ELSE looked_at END
WHERE key = :key;
