-- Take a key under which something is asked for once. No row: somebody has it, and has committed.
INSERT INTO answers (actor, key, what, hash, at)
VALUES (:actor, :key, :what, :hash, (SELECT clock()))
ON CONFLICT (actor, key) DO NOTHING
RETURNING 1;
