-- A session ends; no row if it had ended, or never was.
UPDATE sign_in_sessions SET ended_at = (SELECT clock())
WHERE id = :id AND ended_at IS NULL
RETURNING (SELECT name FROM people WHERE id = person);
