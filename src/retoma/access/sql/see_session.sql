-- Tell that a session is in use; touches nothing if somebody told of it within the last minute.
UPDATE sign_in_sessions SET seen_at = (SELECT clock())
WHERE id = :id AND ended_at IS NULL
  AND (seen_at <= (SELECT clock_in(:fresh)) OR seen_at > (SELECT clock()));
