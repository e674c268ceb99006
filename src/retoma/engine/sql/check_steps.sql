-- The steps of a page of jobs, for the checker; their values only where somebody compares them.
SELECT job, name, version, key, generation, epoch, state, cost,
       CASE WHEN CAST(:whole AS integer) = 1 THEN value END
FROM steps
WHERE job > :after AND job <= :until
ORDER BY job;
