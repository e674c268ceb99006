-- The timelines of a page of jobs, for the checker.
SELECT job, seq, epoch, type, at, actor, details
FROM events
WHERE job > :after AND job <= :until
ORDER BY job, seq;
