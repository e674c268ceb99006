-- Whether some key is good now.
SELECT 1 FROM api_keys k JOIN people p ON p.id = k.person
WHERE k.revoked_at IS NULL AND p.removed_at IS NULL
  AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock()))
LIMIT 1;
