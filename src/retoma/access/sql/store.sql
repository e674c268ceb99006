-- name: add_key
-- A new key; of its token only the hash.
INSERT INTO api_keys (id, person, role, label, hash, created_at, created_by, expires_at)
VALUES (:id, :person, :role, :label, :hash, (SELECT clock()), :actor, :expires);

-- name: add_link
-- A sign-in link; of its token only the hash.
INSERT INTO sign_in_links (id, person, role, hash, created_at, expires_at)
VALUES (:id, :person, :role, :hash, (SELECT clock()), (SELECT clock_in(:life)));

-- name: add_person
-- A new person, unless somebody of that name is here already: then no row.
INSERT INTO people (name, role, created_at) VALUES (:name, :role, (SELECT clock()))
ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING
RETURNING id;

-- name: add_session
-- Somebody is signed in; of the cookie only the hash.
INSERT INTO sign_in_sessions (id, person, role, hash, agent, created_at, seen_at, expires_at)
VALUES (:id, :person, :role, :hash, :agent, (SELECT clock()), (SELECT clock()),
        (SELECT clock_in(:life)));

-- name: any_key
-- Whether some key is good now.
SELECT 1 FROM api_keys k JOIN people p ON p.id = k.person
WHERE k.revoked_at IS NULL AND p.removed_at IS NULL
  AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock()))
LIMIT 1;

-- name: end_all_of
-- Everything that a person could come in with ends.
UPDATE api_keys SET revoked_at = (SELECT clock()) WHERE person = :person AND revoked_at IS NULL;

UPDATE sign_in_sessions SET ended_at = (SELECT clock())
WHERE person = :person AND ended_at IS NULL;

DELETE FROM sign_in_links WHERE person = :person;

-- name: end_session
-- A session ends; no row if it had ended, or never was.
UPDATE sign_in_sessions SET ended_at = (SELECT clock())
WHERE id = :id AND ended_at IS NULL
RETURNING (SELECT name FROM people WHERE id = person);

-- name: find_denied
-- The newest line that somebody was denied this, where it is not older than so many seconds.
SELECT id, details FROM audit
WHERE at > (SELECT clock_in(:ago)) AND actor = :actor AND verb = 'authz_denied'
  AND subject = :subject
ORDER BY at DESC, id DESC LIMIT 1;

-- name: find_key
-- One key and whose it is: whether it is good now, and whether its last use is to be told anew.
SELECT k.hash, k.role, p.id, p.name, p.role,
       k.revoked_at IS NULL AND p.removed_at IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock())),
       k.used_at IS NULL OR k.used_at <= (SELECT clock_in(:fresh)) OR k.used_at > (SELECT clock())
FROM api_keys k JOIN people p ON p.id = k.person WHERE k.id = :id;

-- name: find_link
-- One sign-in link.
SELECT hash FROM sign_in_links WHERE id = :id;

-- name: find_person
-- One person who is still here.
SELECT id, role FROM people WHERE name = :name AND removed_at IS NULL;

-- name: find_session
-- One session and whose it is: whether it is good now, and whether it is to be told as seen.
SELECT s.hash, s.role, p.id, p.name, p.role,
       s.ended_at IS NULL AND p.removed_at IS NULL AND s.expires_at > (SELECT clock())
       AND s.seen_at > (SELECT clock_in(:idle)),
       s.seen_at <= (SELECT clock_in(:fresh)) OR s.seen_at > (SELECT clock())
FROM sign_in_sessions s JOIN people p ON p.id = s.person WHERE s.id = :id;

-- name: forget_ended
-- Links and sessions that were over long ago; the audit log still tells of them.
DELETE FROM sign_in_links WHERE expires_at < (SELECT clock_in(:kept));

DELETE FROM sign_in_sessions WHERE expires_at < (SELECT clock_in(:kept));

-- name: key_exists
-- Whether there is, or was, such a key.
SELECT 1 FROM api_keys WHERE id = :id;

-- name: key_to_replace
-- What the successor of a key takes over.
SELECT k.person, p.name, k.role, k.label, k.created_at, k.expires_at
FROM api_keys k JOIN people p ON p.id = k.person WHERE k.id = :id;

-- name: list_keys
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

-- name: list_names
-- The names of everybody who is here.
SELECT name FROM people WHERE removed_at IS NULL;

-- name: list_people
-- Who is still here, by name from one on, with how many keys and sessions of theirs are good.
SELECT p.id, p.name, p.role, p.created_at,
       (SELECT count(*) FROM api_keys k
        WHERE k.person = p.id AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > (SELECT clock()))),
       (SELECT count(*) FROM sign_in_sessions s
        WHERE s.person = p.id AND s.ended_at IS NULL AND s.expires_at > (SELECT clock())
          AND s.seen_at > (SELECT clock_in(:idle)))
FROM people p WHERE p.removed_at IS NULL AND p.name > :after ORDER BY p.name LIMIT :most;

-- name: list_sessions
-- Sessions that are good now, newest first, from a place on.
SELECT s.id, p.name, s.role, s.agent, s.created_at, s.seen_at, s.expires_at
FROM sign_in_sessions s JOIN people p ON p.id = s.person
WHERE s.ended_at IS NULL AND p.removed_at IS NULL AND s.expires_at > (SELECT clock())
  AND s.seen_at > (SELECT clock_in(:idle))
  AND (s.created_at < :at OR s.created_at = :at AND s.id > :id)
ORDER BY s.created_at DESC, s.id LIMIT :most;

-- name: remove_person
-- Somebody goes: no row if nobody of that name is here.
UPDATE people SET removed_at = (SELECT clock())
WHERE name = :name AND removed_at IS NULL
RETURNING id;

-- name: replace_key
-- A key gets a successor and ends with the overlap, or sooner if it was to.
-- No row if it is not good any more, or has a successor.
UPDATE api_keys
SET replaced_by = :successor,
    expires_at = CASE WHEN expires_at < (SELECT clock_in(:overlap)) THEN expires_at
                      ELSE (SELECT clock_in(:overlap)) END
WHERE id = :id AND revoked_at IS NULL AND replaced_by IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT clock()))
RETURNING id;

-- name: revoke_key
-- A key is good no more; no row if it was revoked before, or never was.
UPDATE api_keys SET revoked_at = (SELECT clock())
WHERE id = :id AND revoked_at IS NULL
RETURNING (SELECT name FROM people WHERE id = person);

-- name: see_session
-- Tell that a session is in use; touches nothing if somebody told of it within the last minute.
UPDATE sign_in_sessions SET seen_at = (SELECT clock())
WHERE id = :id AND ended_at IS NULL
  AND (seen_at <= (SELECT clock_in(:fresh)) OR seen_at > (SELECT clock()));

-- name: session_exists
-- Whether there is, or was, such a session.
SELECT 1 FROM sign_in_sessions WHERE id = :id;

-- name: set_role
-- What a person may do from now on; no row where that is so already.
UPDATE people SET role = :role
WHERE id = :id AND removed_at IS NULL AND role <> :role
RETURNING id;

-- name: use_key
-- Tell of a key's use; touches nothing if somebody told of it within the last minute.
UPDATE api_keys SET used_at = (SELECT clock())
WHERE id = :id
  AND (used_at IS NULL OR used_at <= (SELECT clock_in(:fresh)) OR used_at > (SELECT clock()));

-- name: use_link
-- A sign-in link is used; no row if it was used before, is too old, or its person is gone.
UPDATE sign_in_links SET used_at = (SELECT clock())
WHERE id = :id AND used_at IS NULL AND expires_at > (SELECT clock())
  AND EXISTS (SELECT 1 FROM people p WHERE p.id = person AND p.removed_at IS NULL)
RETURNING person, role, (SELECT name FROM people p WHERE p.id = person);
