-- What jobs of a page that have not ended would read back.
SELECT s.job, s.name, s.version, s.value
FROM jobs j CROSS JOIN steps s
WHERE j.id > :after AND j.id <= :until AND j.state IN ('waiting', 'running', 'parked')
  AND s.job = j.id AND s.generation >= j.fresh_from AND s.state = 'saved'
ORDER BY s.job;
