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

-- name: keep_reserved_answer
-- Keep the answer to what was reserved, from now on.
UPDATE answers SET answer = :answer, at = (SELECT clock())
WHERE actor = :actor AND key = :key AND what = :what;

-- name: release_answer
-- Give back a key that was reserved and came to no answer.
DELETE FROM answers WHERE actor = :actor AND key = :key AND what = :what AND answer IS NULL;

-- name: reserve_answer
-- Reserve a key before the work begins. No row: somebody has reserved it, or has answered a moment ago.
INSERT INTO answers (actor, key, what, hash, at)
VALUES (:actor, :key, :what, :hash, (SELECT clock()))
ON CONFLICT (actor, key) DO UPDATE
    SET hash = excluded.hash, answer = NULL, at = excluded.at
    WHERE answers.what = excluded.what
      AND answers.at < CASE WHEN answers.answer IS NULL
                            THEN (SELECT clock_in(-CAST(:abandoned AS double precision)))
                            ELSE (SELECT clock_in(-CAST(:remembered AS double precision))) END
RETURNING 1;

-- name: take_answer
-- Take a key under which something is asked for once. No row: somebody has it, and has committed.
INSERT INTO answers (actor, key, what, hash, at)
VALUES (:actor, :key, :what, :hash, (SELECT clock()))
ON CONFLICT (actor, key) DO NOTHING
RETURNING 1;
