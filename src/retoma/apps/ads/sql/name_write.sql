-- Under what id a writer stores the ads of a mission; nothing comes back where that is known.
UPDATE ads_missions SET writer_job_id = :job_id
WHERE id = :mission AND writer_job_id IS DISTINCT FROM :job_id
RETURNING id;
