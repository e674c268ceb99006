-- Sessions that are good now, newest first, from a place on.
SELECT s.id, p.name, s.role, s.agent, s.created_at, s.seen_at, s.expires_at
FROM sign_in_sessions s JOIN people p ON p.id = s.person
WHERE s.ended_at IS NULL AND p.removed_at IS NULL AND s.expires_at > (SELECT clock())
  AND s.seen_at > (SELECT clock_in(:idle))
  AND (s.created_at < :at OR s.created_at = :at AND s.id > :id)
ORDER BY s.created_at DESC, s.id LIMIT :most;
