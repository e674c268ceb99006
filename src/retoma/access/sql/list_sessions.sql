-- Sessions that are good now, newest first.
SELECT s.id, p.name, s.role, s.agent, s.created_at, s.seen_at, s.expires_at
FROM sign_in_sessions s JOIN people p ON p.id = s.person
WHERE s.ended_at IS NULL AND p.removed_at IS NULL AND s.expires_at > (SELECT clock())
  AND s.seen_at > (SELECT clock_in(:idle))
ORDER BY s.created_at DESC, s.id LIMIT :most;
