-- name: forget_answers
-- Delete the oldest answers, a bite at a time.
DELETE FROM answers
WHERE (actor, key) IN (SELECT actor, key FROM answers
                       WHERE at < (SELECT clock_in(:before)) ORDER BY at, actor, key LIMIT :bite)
RETURNING 1;

-- name: get_answer
-- What was asked under a key, and the answer.
SELECT what, hash, answer FROM answers WHERE actor = :actor AND key = :key;

-- name: keep_answer
-- Keep the answer under its key.
UPDATE answers SET answer = :answer WHERE actor = :actor AND key = :key;

-- name: take_answer
-- Take a key under which something is asked for once. No row: somebody has it, and has committed.
INSERT INTO answers (actor, key, what, hash, at)
VALUES (:actor, :key, :what, :hash, (SELECT clock()))
ON CONFLICT (actor, key) DO NOTHING
RETURNING 1;
