-- The timeline of one job, from a line on.
SELECT seq, epoch, type, at, actor, details FROM events
WHERE job = :job AND seq > :after ORDER BY seq;
