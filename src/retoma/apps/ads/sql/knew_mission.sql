-- Whether there is or ever was a mission: what happened to it outlives it.
SELECT 1 FROM ads_missions WHERE id = :mission;
