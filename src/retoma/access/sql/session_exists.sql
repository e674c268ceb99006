-- Whether there is, or was, such a session.
SELECT 1 FROM sign_in_sessions WHERE id = :id;
