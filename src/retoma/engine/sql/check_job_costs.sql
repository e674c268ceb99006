-- What the jobs of a page have spent: rolled-up costs and charges not yet rolled up, for the checker.
SELECT job, provider, model, unit, sum(amount)
FROM (
    SELECT j.id AS job, c.provider, c.model, c.unit, c.amount
    FROM jobs j CROSS JOIN costs c
    WHERE j.id > :after AND j.id <= :until
      AND c.scope = 'job' AND c.name = CAST(j.id AS text) AND c.sort = 'spent'
    UNION ALL
    SELECT job, provider, model, unit, amount FROM charges
    WHERE job > :after AND job <= :until AND sort = 'spent') spent
GROUP BY job, provider, model, unit
ORDER BY job;
