-- A key gets a successor and ends with the overlap, or sooner if it was to.
-- No row if it is not good any more, or has a successor.
UPDATE api_keys
SET replaced_by = :successor,
    expires_at = CASE WHEN expires_at < (SELECT clock_in(:overlap)) THEN expires_at
                      ELSE (SELECT clock_in(:overlap)) END
WHERE id = :id AND revoked_at IS NULL AND replaced_by IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT clock()))
RETURNING id;
