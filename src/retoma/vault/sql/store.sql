-- name: any_sealed_otherwise
-- Whether any secret is sealed with another key than this one.
SELECT 1 FROM secrets WHERE key IS NOT NULL AND key <> :key LIMIT 1;

-- name: database_id
-- The database's own id.
SELECT value FROM meta WHERE name = 'database';

-- name: find_secret
-- Where the secret of one place lies.
SELECT ref FROM secrets WHERE owner = :owner AND field = :field AND row = :row;

-- name: first_secret_key
-- The first key that seals here; whoever comes second changes nothing.
INSERT INTO meta (name, value) VALUES ('secret_key', :key) ON CONFLICT (name) DO NOTHING;

-- name: list_secrets
-- Every secret, without what it is: a page in the order of their places.
SELECT owner, field, row, ref, last4, set_at, set_by FROM secrets
WHERE (owner, field, row) > (:owner, :field, :row)
ORDER BY owner, field, row LIMIT :most;

-- name: put_secret
-- A place has this secret from now on, and no other.
INSERT INTO secrets (owner, field, row, ref, key, last4, set_at, set_by)
VALUES (:owner, :field, :row, :ref, :key, :last4, (SELECT clock()), :actor)
ON CONFLICT (owner, field, row) DO UPDATE
SET ref = excluded.ref, key = excluded.key, last4 = excluded.last4, set_at = excluded.set_at,
    set_by = excluded.set_by;

-- name: remove_secret
-- A place has no secret any more; no row if it had none.
DELETE FROM secrets WHERE owner = :owner AND field = :field AND row = :row
RETURNING row;

-- name: sealed_otherwise
-- Secrets sealed with another key than this one: some of them, in the order of their places.
SELECT owner, field, row, ref FROM secrets
WHERE key IS NOT NULL AND key <> :key AND (owner, field, row) > (:owner, :field, :row)
ORDER BY owner, field, row LIMIT :bite;

-- name: secret_key
-- The id of the key that seals here; no row before the first secret.
SELECT value FROM meta WHERE name = 'secret_key';

-- name: turn_secret_key
-- Another key seals from now on.
UPDATE meta SET value = :key WHERE name = 'secret_key';
