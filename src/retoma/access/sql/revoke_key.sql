-- A key is good no more; no row if it was revoked before, or never was.
UPDATE api_keys SET revoked_at = (SELECT clock())
WHERE id = :id AND revoked_at IS NULL
RETURNING (SELECT name FROM people WHERE id = person);
