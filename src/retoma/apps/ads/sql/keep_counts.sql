-- What a writer stored and refused of a mission, while a person looks at it.
UPDATE ads_missions SET success_count = :success, failed_count = :failed
WHERE id = :mission AND storage = :job;
