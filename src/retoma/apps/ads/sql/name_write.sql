-- Under what id a writer stores the ads of a mission.
UPDATE ads_missions SET writer_job_id = :job_id WHERE id = :mission;
