-- A new key; of its token only the hash.
INSERT INTO api_keys (id, person, role, label, hash, created_at, created_by, expires_at)
VALUES (:id, :person, :role, :label, :hash, (SELECT clock()), :actor, :expires);
