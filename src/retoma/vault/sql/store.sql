-- name: any_sealed_otherwise
-- Whether any secret is encrypted with a key other than this one.
SELECT 1 FROM secrets WHERE key IS NOT NULL AND key <> :key LIMIT 1;

-- name: database_id
-- The database's id.
SELECT value FROM meta WHERE name = 'database';

-- name: find_secret
-- The reference to the secret of one field.
SELECT ref FROM secrets WHERE owner = :owner AND field = :field AND row = :row;

-- name: first_secret_key
-- Sets the first key; changes nothing if there is one.
INSERT INTO meta (name, value) VALUES ('secret_key', :key) ON CONFLICT (name) DO NOTHING;

-- name: list_secrets
-- One page of all secrets, without their values, in the order of their fields.
SELECT owner, field, row, ref, last4, set_at, set_by FROM secrets
WHERE (owner, field, row) > (:owner, :field, :row)
ORDER BY owner, field, row LIMIT :most;

-- name: put_secret
-- Sets or replaces the secret of a field.
INSERT INTO secrets (owner, field, row, ref, key, last4, set_at, set_by)
VALUES (:owner, :field, :row, :ref, :key, :last4, (SELECT clock()), :actor)
ON CONFLICT (owner, field, row) DO UPDATE
SET ref = excluded.ref, key = excluded.key, last4 = excluded.last4, set_at = excluded.set_at,
    set_by = excluded.set_by;

-- name: remove_secret
-- Removes the secret of a field; no row if it had none.
DELETE FROM secrets WHERE owner = :owner AND field = :field AND row = :row
RETURNING row;

-- name: sealed_otherwise
-- One slice of the secrets encrypted with a key other than this one, in the order of their fields.
SELECT owner, field, row, ref FROM secrets
WHERE key IS NOT NULL AND key <> :key AND (owner, field, row) > (:owner, :field, :row)
ORDER BY owner, field, row LIMIT :bite;

-- name: secret_key
-- The id of the current key; no row before the first secret.
SELECT value FROM meta WHERE name = 'secret_key';

-- name: set_secret_key
-- Sets the current key.
UPDATE meta SET value = :key WHERE name = 'secret_key';
