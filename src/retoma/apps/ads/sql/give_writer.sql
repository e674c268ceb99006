-- Which writer stores the ads of a mission; nobody, once what it was sent has failed.
UPDATE ads_missions SET writer_id = :writer, writer_job_id = NULL
WHERE id = :mission AND status = 'running'
RETURNING id;
