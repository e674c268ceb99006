-- Which job has a mission's ads stored.
UPDATE ads_missions SET storage = :job WHERE id = :mission;
