-- One key and whose it is: whether it is good now, and whether its last use is to be told anew.
SELECT k.hash, k.role, p.id, p.name, p.role,
       k.revoked_at IS NULL AND p.removed_at IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock())),
       k.used_at IS NULL OR k.used_at <= (SELECT clock_in(:fresh)) OR k.used_at > (SELECT clock())
FROM api_keys k JOIN people p ON p.id = k.person WHERE k.id = :id;
