-- Which writer stores the ads of a mission.
UPDATE ads_missions SET writer_id = :writer, writer_job_id = NULL WHERE id = :mission;
