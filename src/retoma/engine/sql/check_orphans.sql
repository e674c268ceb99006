-- Rows that belong to a job that is not there, by table, for the checker.
SELECT 'steps', s.job, s.name FROM steps s
WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = s.job)
UNION ALL
SELECT 'job_evidence', e.job, e.name FROM job_evidence e
WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = e.job)
LIMIT :most;
