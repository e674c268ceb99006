-- Who is still here, by name from one on, with how many keys and sessions of theirs are good.
SELECT p.id, p.name, p.role, p.created_at,
       (SELECT count(*) FROM api_keys k
        WHERE k.person = p.id AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock()))),
       (SELECT count(*) FROM sign_in_sessions s
        WHERE s.person = p.id AND s.ended_at IS NULL AND s.expires_at > (SELECT clock())
          AND s.seen_at > (SELECT clock_in(:idle)))
FROM people p WHERE p.removed_at IS NULL AND p.name > :after ORDER BY p.name LIMIT :most;
