-- Delete the oldest answers, a bite at a time.
DELETE FROM answers
WHERE (actor, key) IN (SELECT actor, key FROM answers
                       WHERE at < (SELECT clock_in(:before)) ORDER BY at, actor, key LIMIT :bite)
RETURNING 1;
