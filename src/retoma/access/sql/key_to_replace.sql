-- What the successor of a key takes over.
SELECT k.person, p.name, k.role, k.label, k.created_at, k.expires_at
FROM api_keys k JOIN people p ON p.id = k.person WHERE k.id = :id;
