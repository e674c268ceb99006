-- name: declare_duty
-- A leader task that some instance can do; nothing changes where it is known.
INSERT INTO duties (name) VALUES (:name) ON CONFLICT (name) DO NOTHING;

-- name: lay_down_duty
-- Let another have the duty; nothing where this boot no longer holds it in this term.
UPDATE duties SET boot = NULL WHERE name = :name AND boot = :boot AND term = :term;

-- name: forget_try
-- In the same transaction: nobody ever sees what was tried.
DELETE FROM evidence WHERE sha256 = :name;

-- name: try_write
-- Meet whatever a write would meet, a lack of room included; forget_try takes it back at once.
INSERT INTO evidence (sha256, codec, size, bytes, used_at)
VALUES (:name, 'probe', 0, :filler, (SELECT clock()));
