-- A page of jobs by their first event, also of those that are no more.
SELECT job, at FROM events WHERE seq = 1 AND job > :after ORDER BY job LIMIT :page;
