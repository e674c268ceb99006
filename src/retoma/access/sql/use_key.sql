-- Tell of a key's use; touches nothing if somebody told of it within the last minute.
UPDATE api_keys SET used_at = (SELECT clock())
WHERE id = :id
  AND (used_at IS NULL OR used_at <= (SELECT clock_in(:fresh)) OR used_at > (SELECT clock()));
