-- Which job extracts a mission.
UPDATE ads_missions SET extraction = :job WHERE id = :mission;
