-- Keys, newest first, from a place on; of one if it is named; those that were revoked only if they are asked for.
SELECT k.id, p.name, k.role, k.label, k.created_at, k.created_by, k.expires_at, k.used_at,
       k.revoked_at, k.replaced_by,
       k.revoked_at IS NULL AND p.removed_at IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock()))
FROM api_keys k JOIN people p ON p.id = k.person
WHERE (k.revoked_at IS NULL OR CAST(:every AS integer) = 1)
  AND (CAST(:only AS text) IS NULL OR k.id = :only)
  AND (k.created_at < :at OR k.created_at = :at AND k.id > :id)
ORDER BY k.created_at DESC, k.id LIMIT :most;
