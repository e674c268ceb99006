-- Under what id a worker scrapes for a mission.
UPDATE ads_missions SET worker_job_id = :job_id WHERE id = :mission AND extraction = :job;
