-- The newest lines of one job's timeline, or those before a line of it.
SELECT seq, epoch, type, at, actor, details FROM events
WHERE job = :job AND seq < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY seq DESC
LIMIT :limit;
