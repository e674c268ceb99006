-- One session and whose it is: whether it is good now, and whether it is to be told as seen.
SELECT s.hash, s.role, p.id, p.name, p.role,
       s.ended_at IS NULL AND p.removed_at IS NULL AND s.expires_at > (SELECT clock())
       AND s.seen_at > (SELECT clock_in(:idle)),
       s.seen_at <= (SELECT clock_in(:fresh)) OR s.seen_at > (SELECT clock())
FROM sign_in_sessions s JOIN people p ON p.id = s.person WHERE s.id = :id;
