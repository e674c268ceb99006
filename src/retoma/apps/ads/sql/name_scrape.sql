-- Under what id a worker scrapes for a mission; nothing comes back where that is known.
UPDATE ads_missions SET worker_job_id = :job_id
WHERE id = :mission AND extraction = :job AND worker_job_id IS DISTINCT FROM :job_id
RETURNING id;
