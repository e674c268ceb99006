-- Under which id a writer has the ads of a mission.
SELECT writer_job_id FROM ads_missions WHERE id = :mission;
