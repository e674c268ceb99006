-- The timeline of one job, from a line on, as many lines as are wanted.
SELECT seq, epoch, type, at, actor, details FROM events
WHERE job = :job AND seq > :after ORDER BY seq
LIMIT coalesce(CAST(:limit AS bigint), 9223372036854775807);
